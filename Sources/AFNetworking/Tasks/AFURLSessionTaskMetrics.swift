// SPDX-License-Identifier: MIT

public import AsyncNetworking

/// The metrics of a task, in ``exchanges``. The inherited properties are empty because only Foundation can set them.
///
/// `@unchecked Sendable` restates the conformance inherited from Foundation. The only stored property is `Sendable`.
public final class AFURLSessionTaskMetrics: URLSessionTaskMetrics, @unchecked Sendable {
    private let core: TransferCore?

    /// The metrics of each exchange in order, including those of redirects; empty if nothing was sent.
    public var exchanges: [TransferMetrics] { core?.exchanges ?? [] }

    init(of core: TransferCore?) {
        self.core = core
        super.init()
    }
}
