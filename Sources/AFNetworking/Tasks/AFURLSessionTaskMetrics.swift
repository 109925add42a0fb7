// SPDX-License-Identifier: MIT

public import AsyncNetworking

/// What a task cost. Foundation's own members stay empty here: they can be filled by Foundation only.
///
/// Foundation's class has it restate that it is sendable: its one property is.
public final class AFURLSessionTaskMetrics: URLSessionTaskMetrics, @unchecked Sendable {
    private let core: TransferCore?

    /// What each exchange cost, those of redirects among them, in their order; none where nothing was sent.
    public var exchanges: [TransferMetrics] { core?.exchanges ?? [] }

    init(of core: TransferCore?) {
        self.core = core
        super.init()
    }
}
