// SPDX-License-Identifier: MIT

public import AsyncNetworking

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

// `@unchecked Sendable` restates the conformance inherited from Foundation. The only stored property is `Sendable`.

/// The metrics of a task, in ``exchanges``. The inherited properties are empty because only Foundation can set them.
///
/// When the task has ended, the block of ``AFURLSessionManager/setTaskDidFinishCollectingMetricsBlock(_:)`` receives
/// them, and the user info of the notification `AFNetworkingTaskDidComplete` contains them.
public final class AFURLSessionTaskMetrics: URLSessionTaskMetrics, @unchecked Sendable {
    private let core: TaskCore?

    /// The metrics of each exchange in order, including those of redirects, of answered challenges and of failed
    /// connections; empty if the response came from the cache, or the task ended before its first exchange.
    public var exchanges: [TransferMetrics] { core?.exchanges ?? [] }

    init(of core: TaskCore?) {
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
    public var coreTask: AnySessionTask? {
        (self as? any DrivenTask)?.driver.coreTask.map { AnySessionTask($0) }
    }
}
