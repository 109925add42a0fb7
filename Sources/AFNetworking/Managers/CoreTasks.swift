// SPDX-License-Identifier: MIT

public import AsyncNetworking

extension URLSessionTask {
    /// The core's task that does the work: its progress and events are streams of values. What is to be done to it is done
    /// to this one; when it ends all the same, by a cancelled core session for example, this one ends and calls back.
    ///
    /// Nil for a task that is not of ``AFURLSessionManager``, and where the request could not be made.
    public var transfer: (any TransferHandle)? {
        (self as? any DrivenTask)?.driver.transfer
    }
}
