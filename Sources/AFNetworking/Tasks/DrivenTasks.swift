// SPDX-License-Identifier: MIT

// `@unchecked Sendable` restates the conformance that these classes inherit from Foundation. The driver is `Sendable`.
// Their overrides are the same, but each class must have another superclass.

/// A task that was created by this module.
protocol DrivenTask: URLSessionTask {
    var driver: TaskDriver { get }
}

/// A task that collects the response in memory.
final class AFDataTask: URLSessionDataTask, DrivenTask, @unchecked Sendable {
    let driver: TaskDriver

    /// Creates the suspended task of a driver.
    init(_ driver: TaskDriver) {
        self.driver = driver
        super.init()
        driver.adopt(self)
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

    override var priority: Float {
        get { driver.priority }
        set { driver.priority = newValue }
    }
}

/// A task that sends a request body.
final class AFUploadTask: URLSessionUploadTask, DrivenTask, @unchecked Sendable {
    let driver: TaskDriver

    /// Creates the suspended task of a driver.
    init(_ driver: TaskDriver) {
        self.driver = driver
        super.init()
        driver.adopt(self)
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

    override var priority: Float {
        get { driver.priority }
        set { driver.priority = newValue }
    }
}

/// A task that writes the response to a file.
final class AFDownloadTask: URLSessionDownloadTask, DrivenTask, @unchecked Sendable {
    let driver: TaskDriver

    /// Creates the suspended task of a driver.
    init(_ driver: TaskDriver) {
        self.driver = driver
        super.init()
        driver.adopt(self)
    }

    override func resume() { driver.resume() }
    override func suspend() { driver.suspend() }
    override func cancel() { driver.cancel() }

    override func cancel(byProducingResumeData completionHandler: @escaping (Data?) -> Void) {
        driver.cancel(producingResumeData: completionHandler)
    }

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

    override var priority: Float {
        get { driver.priority }
        set { driver.priority = newValue }
    }
}
