// SPDX-License-Identifier: MIT

/// A task that sends a request body.
///
/// `@unchecked Sendable` restates the conformance inherited from Foundation. The only stored property is `Sendable`.
final class AFUploadTask: URLSessionUploadTask, DrivenTask, @unchecked Sendable {
    let driver: TaskDriver

    /// Creates the task of a driver: running if `isResumed`, otherwise suspended.
    init(_ driver: TaskDriver, isResumed: Bool = false) {
        self.driver = driver
        super.init()
        if isResumed { driver.begin(self) } else { driver.adopt(self) }
    }

    override func resume() { driver.resume() }
    override func suspend() { driver.suspend() }
    override func cancel() { driver.cancel() }

    override var taskIdentifier: Int { driver.identifier }
    override var originalRequest: URLRequest? { driver.original.urlRequest }
    override var currentRequest: URLRequest? { driver.currentRequest }
    override var response: URLResponse? { driver.response }
    override var state: URLSessionTask.State { driver.taskState }
    override var error: (any Error)? { driver.error }
    override var progress: Progress { driver.overallProgress }
    override var countOfBytesSent: Int64 { driver.counts.sent }
    override var countOfBytesReceived: Int64 { driver.counts.received }
    override var countOfBytesExpectedToSend: Int64 { driver.counts.expectedToSend }
    override var countOfBytesExpectedToReceive: Int64 { driver.counts.expectedToReceive }

    override var taskDescription: String? {
        get { driver.taskDescription }
        set { driver.taskDescription = newValue }
    }

    override var priority: Float {
        get { driver.priority }
        set { driver.priority = newValue }
    }

    override var description: String { driver.description(of: self) }
    override func copy() -> Any { self }
    override func copy(with zone: NSZone?) -> Any { self }
}
