// SPDX-License-Identifier: MIT

import ANSystem
public import AsyncNetworking
public import Dispatch
import HTTPTypes

/// Makes tasks that call back, on one ``AsyncNetworking/SessionManager``.
///
/// Completion handlers are called on the main queue, which a program must serve, by `dispatchMain()`, a run loop or an
/// asynchronous `main`; ``completionQueue`` names another one. All else that is called, progress and the blocks of
/// `set…Block`, is called on the manager's own serial queue. All members may be used from any thread.
///
/// A manager keeps its tasks until they end, and its tasks keep the manager: it is freed with its last reference once its last
/// task is over. A task that is neither resumed nor cancelled keeps both, unless
/// ``invalidateSessionCancelingTasks(_:resetSession:)`` cancels it.
open class AFURLSessionManager: AFURLSessionEvents, NSSecureCoding, NSCopying, ResponseSerializing, @unchecked Sendable
{
    /// Creates a manager with the default configuration.
    public convenience init() {
        self.init(sessionConfiguration: nil)
    }

    /// Creates a manager.
    ///
    /// - Parameter configuration: Its time limits, header fields, connection limit, proxy, cookie and cache switches are
    ///   taken over; changes that are made to it later are not.
    public init(sessionConfiguration configuration: URLSessionConfiguration?) {
        super.init(ManagerState(configuration ?? .default))
    }

    /// Creates a manager of tasks on a session of the core's, which it shares: connections, cookies and policies.
    public convenience init(session: SessionManager) {
        self.init(sessionConfiguration: .sharing(session))
    }

    deinit {
        // A session of its own ends with its last reference.
        state.withLock { $0.session }?.end()
    }

    // MARK: Parts

    /// The session of the core's that performs the requests; another one after `invalidateSessionCancelingTasks` with
    /// `resetSession`.
    public var coreSession: SessionManager { state.withLock { $0.core } }

    /// The session, as blocks are told of it: it knows its tasks and its configuration, and performs nothing.
    open var session: URLSession { state.withLock { $0.session(of: self) } }

    /// The configuration that the manager was made with.
    var sessionConfiguration: URLSessionConfiguration { state.withLock { $0.configuration } }

    /// What servers must show; by default a valid chain and the right name. It counts for tasks that start later.
    open var securityPolicy: AFSecurityPolicy {
        get { state.withLock { $0.securityPolicy } }
        set {
            state.withLock { $0.hasOwnPolicy = true }
            state.set(\.securityPolicy, to: newValue)
        }
    }

    /// What makes objects of responses, whatever its type.
    public var anyResponseSerializer: any AFURLResponseSerialization {
        get { state.withLock { $0.responseSerializer.value } }
        set { state.set(\.responseSerializer, to: Handover(newValue)) }
    }

    /// A manager of reachability, which this one does not ask: by default the shared one, not started.
    open var reachabilityManager: AFNetworkReachabilityManager {
        get { state.withLock { $0.reachabilityManager ?? .shared() } }
        set { state.set(\.reachabilityManager, to: newValue) }
    }

    /// Where completion handlers are called; nil, the default, for the main queue.
    open var completionQueue: DispatchQueue? {
        get { state.withLock { $0.completionQueue } }
        set { state.withLock { $0.completionQueue = newValue } }
    }

    /// The group that completion handlers belong to, each from the moment at which it is about to be called; nil, the
    /// default, for none.
    open var completionGroup: DispatchGroup? {
        get { state.withLock { $0.completionGroup } }
        set { state.withLock { $0.completionGroup = newValue } }
    }

    /// There is no queue of operations: the setting of the number of connections is in the configuration.
    @available(
        *, unavailable, message: "Use URLSessionConfiguration.httpMaximumConnectionsPerHost, or task groups."
    )
    public var operationQueue: OperationQueue { OperationQueue() }

    /// What becomes of a response at this moment, as a subclass may have it.
    var delivery: TaskDelivery {
        guard isSubclassed else {
            return state.withLock { state in
                TaskDelivery(
                    serializer: state.responseSerializer.value,
                    completionQueue: CompletionQueue(queue: state.completionQueue, group: state.completionGroup))
            }
        }
        let serializer = anyResponseSerializer
        let manager = serializer is AFHTTPResponseSerializer ? self as? AFHTTPSessionManager : nil
        return TaskDelivery(
            serializer: manager?.responseSerializer ?? serializer,
            completionQueue: CompletionQueue(queue: completionQueue, group: completionGroup))
    }

    // MARK: Tasks

    /// The tasks that are not over, also those that were not resumed: data, upload, then download tasks.
    open var tasks: [URLSessionTask] { dataTasks + uploadTasks + downloadTasks }

    /// The data tasks that are not over.
    open var dataTasks: [URLSessionDataTask] {
        allTasks.filter { !($0 is URLSessionUploadTask) }.compactMap { $0 as? URLSessionDataTask }
    }

    /// The upload tasks that are not over.
    open var uploadTasks: [URLSessionUploadTask] { allTasks.compactMap { $0 as? URLSessionUploadTask } }

    /// The download tasks that are not over.
    open var downloadTasks: [URLSessionDownloadTask] { allTasks.compactMap { $0 as? URLSessionDownloadTask } }

    private var allTasks: [URLSessionTask] { state.withLock { $0.tasks } }

    /// Makes a task that collects the response; it waits to be resumed.
    ///
    /// - Parameters:
    ///   - request: What is sent.
    ///   - uploadProgress: Told on the manager's queue how much of the body was sent.
    ///   - downloadProgress: Told on the manager's queue how much of the response was received.
    ///   - completionHandler: Given the response, what the serializer made of it, and what went wrong.
    open func dataTask(
        with request: URLRequest, uploadProgress: ((Progress) -> Void)?, downloadProgress: ((Progress) -> Void)?,
        completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionDataTask {
        AFDataTask(
            makeDriver(
                .given(request), .data,
                TaskCallbacks(
                    uploadProgress: uploadProgress, downloadProgress: downloadProgress,
                    completion: completionHandler.map { .object($0) } ?? .none)))
    }

    /// Makes a task that sends a file; it waits to be resumed.
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL, progress: ((Progress) -> Void)?,
        completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL.path), progress, completionHandler)
    }

    /// Makes a task that sends bytes, or the request's own body where there are none; it waits to be resumed.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?, progress: ((Progress) -> Void)?,
        completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionUploadTask {
        makeUploadTask(request, bodyData.map(RequestBody.bytes), progress, completionHandler)
    }

    /// Makes a task that sends the body of the request, a multipart form or another stream; it waits to be resumed.
    ///
    /// A body of known size is sent with its `Content-Length`.
    open func uploadTask(
        withStreamedRequest request: URLRequest, progress: ((Progress) -> Void)?,
        completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionUploadTask {
        makeUploadTask(request, nil, progress, completionHandler)
    }

    /// Makes a task that writes the response to a file, whatever its status is; it waits to be resumed.
    ///
    /// - Parameters:
    ///   - request: What is sent.
    ///   - progress: Told on the manager's queue how much of the response was received.
    ///   - destination: Asked on the manager's queue where the file belongs, which must not be there yet.
    ///   - completionHandler: Given the response, the file's place, and what went wrong.
    open func downloadTask(
        with request: URLRequest, progress: ((Progress) -> Void)?,
        destination: ((URL, URLResponse) -> URL)?,
        completionHandler: ((URLResponse, URL?, (any Error)?) -> Void)?
    ) -> URLSessionDownloadTask {
        AFDownloadTask(
            makeDriver(
                .given(request), .download(nil),
                TaskCallbacks(
                    downloadProgress: progress, destination: destination,
                    completion: completionHandler.map { .file($0) } ?? .none)))
    }

    /// Makes a task that goes on with a download that was cancelled, or has failed; it waits to be resumed.
    ///
    /// - Parameters:
    ///   - resumeData: From `cancel(byProducingResumeData:)`, or from `NSURLSessionDownloadTaskResumeData` of an error. Where
    ///     it cannot be understood, the task fails.
    ///   - progress: See ``downloadTask(with:progress:destination:completionHandler:)``.
    ///   - destination: See there.
    ///   - completionHandler: See there.
    open func downloadTask(
        withResumeData resumeData: Data, progress: ((Progress) -> Void)?, destination: ((URL, URLResponse) -> URL)?,
        completionHandler: ((URLResponse, URL?, (any Error)?) -> Void)?
    ) -> URLSessionDownloadTask {
        let data = ResumeData(archived: resumeData)
        // A request without a URL fails when it is sent.
        var request = URLRequest(url: data?.url ?? URL(filePath: "/"))
        request.allHTTPHeaderFields = data?.headers.dictionary
        if data == nil { request.url = nil }
        return AFDownloadTask(
            makeDriver(
                .given(request), .download(data),
                TaskCallbacks(
                    downloadProgress: progress, destination: destination,
                    completion: completionHandler.map { .file($0) } ?? .none)))
    }

    private func makeUploadTask(
        _ request: URLRequest, _ body: RequestBody?, _ progress: ((Progress) -> Void)?,
        _ completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionUploadTask {
        AFUploadTask(
            makeDriver(
                .given(request), .upload(body),
                TaskCallbacks(
                    uploadProgress: progress, completion: completionHandler.map { .object($0) } ?? .none)))
    }

    /// How much of a task's body was sent; nil for a task that is over, or of another manager.
    open func uploadProgress(for task: URLSessionTask) -> Progress? {
        driver(of: task)?.progress(\.uploadProgress)
    }

    /// How much of a task's response was received; nil for a task that is over, or of another manager.
    open func downloadProgress(for task: URLSessionTask) -> Progress? {
        driver(of: task)?.progress(\.downloadProgress)
    }

    private func driver(of task: URLSessionTask) -> TaskDriver? {
        guard let driver = (task as? any DrivenTask)?.driver, driver.manager === self else { return nil }
        return driver.taskState == .completed ? nil : driver
    }

    // MARK: Copies and archives

    /// Restores a manager with the archived configuration.
    public required init?(coder: NSCoder) {
        super.init(ManagerState(Self.archivedConfiguration(coder) ?? .default))
    }

    /// The configuration of an archive; nil where there is none.
    static func archivedConfiguration(_ coder: NSCoder) -> URLSessionConfiguration? {
        coder.decodeValue(ArchivedConfiguration.self, forKey: "sessionConfiguration")?.configuration
    }

    /// Archives what the manager takes over from its configuration; not a shared session of the core's.
    open func encode(with coder: NSCoder) {
        coder.encodeValue(ArchivedConfiguration(sessionConfiguration), forKey: "sessionConfiguration")
    }

    /// True.
    open class var supportsSecureCoding: Bool { true }

    /// A manager with the same configuration, and nothing else of this one's.
    open func copy(with zone: NSZone? = nil) -> Any {
        AFURLSessionManager(sessionConfiguration: copiedConfiguration)
    }

    /// The configuration for a copy, which shares a session of the core's where this manager does.
    var copiedConfiguration: URLSessionConfiguration {
        state.withLock { $0.isShared ? .sharing($0.core) : $0.configuration }
    }

    /// The manager's class, address, session and tasks.
    open override var description: String {
        "<\(type(of: self)): \(ObjectIdentifier(self)), session: \(coreSession), tasks: \(tasks.count)>"
    }
}
