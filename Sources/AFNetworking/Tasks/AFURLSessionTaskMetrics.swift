// SPDX-License-Identifier: MIT

public import AsyncNetworking

/// What a task cost. Foundation's own members stay empty here: they can be filled by Foundation only.
public final class AFURLSessionTaskMetrics: URLSessionTaskMetrics, @unchecked Sendable {
    /// What each exchange cost, those of redirects among them, in their order.
    public let exchanges: [TransferMetrics]

    init(exchanges: [TransferMetrics]) {
        self.exchanges = exchanges
        super.init()
    }
}
