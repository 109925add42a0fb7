// SPDX-License-Identifier: MIT

public import AsyncNetworking

extension URLSessionTask {
    /// The AsyncNetworking task that performs the transfer, with its streams of progress and events.
    ///
    /// To resume, suspend or cancel, use the `URLSessionTask`. If the AsyncNetworking task ends for another reason,
    /// such as the cancellation of its session, the `URLSessionTask` ends and calls its completion handler.
    ///
    /// `nil` if the task was not created by an ``AFURLSessionManager`` or its request cannot be created.
    public var transfer: (AnyTransferTask)? {
        (self as? any DrivenTask)?.driver.transfer.map { AnyTransferTask($0) }
    }
}
