// SPDX-License-Identifier: MIT

public import AsyncNetworking

// `@unchecked Sendable` restates the conformance inherited from Foundation. The only stored property is `Sendable`.

/// The metrics of a task, in ``exchanges``. The inherited properties are empty because only Foundation can set them.
///
/// When the task has ended, the block of ``AFURLSessionManager/setTaskDidFinishCollectingMetricsBlock(_:)`` receives
/// them, and the user info of the notification `AFNetworkingTaskDidComplete` contains them.
public final class AFURLSessionTaskMetrics: URLSessionTaskMetrics, @unchecked Sendable {
    private let core: TransferCore?

    /// The metrics of each exchange in order, including those of redirects, of answered challenges and of failed
    /// connections; empty if the response came from the cache, or the task ended before its first exchange.
    public var exchanges: [TransferMetrics] { core?.exchanges ?? [] }

    init(of core: TransferCore?) {
        self.core = core
        super.init()
    }
}

extension URLSessionTask {
    /// The AsyncNetworking task that performs the transfer, with its streams of progress and events.
    ///
    /// To resume, suspend or cancel, use the `URLSessionTask`. If the AsyncNetworking task ends for another reason,
    /// such as the cancellation of its session, the `URLSessionTask` ends and calls its completion handler.
    ///
    /// `nil` if the task was not created by an ``AFURLSessionManager``, its request cannot be created, its manager was
    /// invalidated before it started, or it was cancelled before it was first resumed. Reading the property creates the
    /// transfer of a suspended task, with the settings that the manager has at this time; the task then keeps it, also
    /// after a cancellation.
    public var transfer: AnyTransferTask? {
        (self as? any DrivenTask)?.driver.transfer.map { AnyTransferTask($0) }
    }
}
