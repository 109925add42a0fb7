// SPDX-License-Identifier: MIT

import ANSystem
public import AsyncNetworking
public import Dispatch
import HTTPTypes

/// A manager of tasks with callbacks, implemented on one ``AsyncNetworking/SessionManager``.
///
/// Completion handlers are called on ``completionQueue``, by default the main queue. The program must then serve the
/// main queue with `dispatchMain()`, a run loop or an asynchronous `main`. Without a response, they receive an empty
/// `URLResponse`. Progress and the blocks for events are called on the manager's own serial queue, except during TLS
/// handshakes. All members may be used from any thread.
///
/// Transfers fail with errors of `NSURLErrorDomain`, whose underlying error, if any, is that of AsyncNetworking. Errors
/// of the program, such as those of a challenge block or an interceptor, are passed unchanged.
///
/// A manager is freed when its last reference is released and its last task has ended. A task that is neither resumed
/// nor cancelled retains it until ``invalidateSessionCancelingTasks(_:resetSession:)`` cancels the task.
open class AFURLSessionManager: AFURLSessionEvents, NSSecureCoding, NSCopying, ResponseSerializing, @unchecked Sendable
{
    /// Creates a manager with the configuration `URLSessionConfiguration.default`, an ``AFJSONResponseSerializer`` and
    /// the default security policy.
    public override convenience init() {
        self.init(sessionConfiguration: nil)
    }

    /// Creates a manager with settings of a configuration, an ``AFJSONResponseSerializer`` and the default security
    /// policy.
    ///
    /// | setting | effect |
    /// |---|---|
    /// | `timeoutIntervalForRequest` | limits the time without a byte; 60 s by default |
    /// | `timeoutIntervalForResource` | limits each exchange as a whole; none for a week, the default, or more |
    /// | `httpAdditionalHeaders` | header fields for requests that lack them, to any host; an ``AFHTTPRequestSerializer`` sets `User-Agent` and `Accept-Language` |
    /// | `httpMaximumConnectionsPerHost` | 6 by default; no limit for 0 or less |
    /// | `connectionProxyDictionary` | its first proxy for HTTPS, HTTP or SOCKS, for all URLs; or the environment's |
    /// | `requestCachePolicy` | the cache policy of requests without their own |
    /// | `urlCache` | a cache of its capacities, one per object; none for `nil` and `URLCache.shared` |
    /// | `httpCookieStorage` | its cookies, also those of other managers; `HTTPCookieStorage.shared` by default |
    /// | `httpShouldSetCookies`, `httpCookieAcceptPolicy` | no cookies if the first is `false` or the second `.never` |
    ///
    /// Others have no effect. A timeout of 0 or less, or of 10⁹ seconds or more, means no limit; establishing a
    /// connection is limited to 30 s in any case. Changes of the cookie storage apply to requests that start later; an
    /// `.ephemeral` configuration has one of its own, and without a storage there are no cookies. Foundation writes
    /// those of the shared storage to a file that other users of the system can read, unless they end with the process.
    /// A proxy needs a host and a port, and must not be disabled. With a disk capacity, the cache is in a directory
    /// beside that of `ResponseCache.standard`, one for all caches of about this capacity, otherwise in memory. The `URLCache`
    /// itself remains empty: to remove the responses, for example when a user signs out, call
    /// `coreSession.configuration.cache?.removeAll()` instead of its `removeAllCachedResponses()`.
    ///
    /// - Parameter configuration: The configuration, which is copied; `nil` for the default one.
    public init(sessionConfiguration configuration: URLSessionConfiguration?) {
        super.init()
        state.withLock { $0 = ManagerState(configuration ?? .default) }
    }

    /// Creates a manager that runs its tasks on an AsyncNetworking session and shares its connections, cookies and
    /// policies. An ``AFHTTPSessionManager`` also takes its base URL. Responses are decoded by an
    /// ``AFJSONResponseSerializer``.
    ///
    /// If the session has several event loops, blocks and overrides that decide during TLS handshakes may be called at the
    /// same time. Of a configuration that an override of another initializer passes on, only the `httpAdditionalHeaders`
    /// are used.
    ///
    /// - Parameter session: The session, which the manager never invalidates.
    public convenience init(session: SessionManager) {
        self.init(sessionConfiguration: .sharing(session))
        // An override in a subclass may have passed on another configuration.
        state.withLock { $0.share(session) }
    }

    // MARK: Parts

    /// The AsyncNetworking session that performs the requests. It has the base URL of an ``AFHTTPSessionManager``, but
    /// neither the header fields of its request serializer nor its security policy, which may change later. Unless it
    /// is shared, the first task, or another invalidation, after ``invalidateSessionCancelingTasks(_:resetSession:)`` with
    /// a reset replaces it.
    public var coreSession: SessionManager { state.withLock { $0.core } }

    /// The session that blocks receive as an argument, with the manager's tasks and configuration. Data, upload and
    /// download tasks that it creates without a completion handler are the manager's, including streamed uploads and
    /// resumed downloads.
    ///
    /// Foundation performs all others itself: tasks with a completion handler, those of its `async` methods, WebSocket
    /// tasks, and tasks created after the manager was freed. For them it uses an ephemeral configuration instead of the
    /// manager's, without its timeouts, proxy, cookies and cache, and neither the security policy nor the header fields
    /// apply. Its `finishTasksAndInvalidate()` and `invalidateAndCancel()` invalidate the manager's session; an object
    /// that was replaced by a reset only lists and cancels the tasks that it still has. Its `reset(completionHandler:)`
    /// empties the cache of ``coreSession``, unless that is shared, but keeps the cookies: delete them from the
    /// `httpCookieStorage` of the configuration.
    open var session: URLSession { state.withLock { $0.session(of: self) } }

    /// The rules for trusting servers, read when a task starts. Default: a valid certificate chain for the host name,
    /// without pinning. A refused server fails the task with -1202.
    ///
    /// The policy of a shared session applies until this is set or a subclass overrides it, its `hostPolicies` also
    /// afterwards. A block for challenges takes precedence, see ``setSessionDidReceiveAuthenticationChallenge(_:)``; if
    /// it leaves the decision to the policy, an override is also read during the TLS handshake.
    open var securityPolicy: AFSecurityPolicy {
        get { state.withLock { $0.securityPolicy } }
        set { setPolicy(newValue, failure: nil) }
    }

    /// Sets the security policy together with the error of tasks that start with it; `nil` if it fits the base URL.
    func setPolicy(_ policy: AFSecurityPolicy, failure: NSError?) {
        // The previous policy is released after the critical section.
        var other = policy
        state.withLock { state in
            swap(&state.securityPolicy, &other)
            state.hasOwnPolicy = true
            state.policyFailure = failure
        }
    }

    /// The serializer that converts responses to objects, read when each response is complete. Default: an
    /// ``AFJSONResponseSerializer``. `responseSerializer` is the same object, with the static type of the class: in an
    /// ``AFHTTPSessionManager``, set this property to use one that is not an ``AFHTTPResponseSerializer``.
    public var anyResponseSerializer: any AFURLResponseSerialization {
        get { state.withLock { $0.responseSerializer.value } }
        set { state.set(\.responseSerializer, to: UncheckedSendable(newValue)) }
    }

    /// A reachability manager for use by the program. Default: ``AFNetworkReachabilityManager/shared()``, not
    /// monitoring. The session manager itself does not read it.
    open var reachabilityManager: AFNetworkReachabilityManager {
        get { state.withLock { $0.reachabilityManager ?? .shared() } }
        set { state.set(\.reachabilityManager, to: newValue) }
    }

    /// The queue on which completion handlers, `success` and `failure` are called, read when a task ends. Default:
    /// `nil`, for the main queue, which the program must serve. Progress and other blocks do not use it.
    open var completionQueue: DispatchQueue? {
        get { state.withLock { $0.completionQueue } }
        set { state.withLock { $0.completionQueue = newValue } }
    }

    /// The dispatch group of completion handlers, from their scheduling to their return; read when a task ends. A task
    /// that is still running is not in the group, so neither `wait()` nor `notify` waits for its end. If the request of a
    /// verb cannot be created, `failure` is not in the group. Default: `nil`, no group.
    open var completionGroup: DispatchGroup? {
        get { state.withLock { $0.completionGroup } }
        set { state.withLock { $0.completionGroup = newValue } }
    }

    /// A serial operation queue, always the same, on which the manager runs nothing: its number of concurrent operations
    /// does not limit tasks, and cancelling its operations does not cancel them.
    @available(
        *, deprecated,
        message:
            "The manager runs nothing on it. Limit tasks with httpMaximumConnectionsPerHost; cancel those in tasks."
    )
    open var operationQueue: OperationQueue {
        state.withLock { state in
            if state.operationQueue == nil {
                state.operationQueue = OperationQueue()
                state.operationQueue?.maxConcurrentOperationCount = 1
            }
            return state.operationQueue ?? OperationQueue()
        }
    }

    /// Whether AFNetworking 3 created an upload task again if the system failed to do so in a background session; has no
    /// effect, as there are no background sessions. `false` by default.
    @available(*, deprecated, message: "It has no effect: there are no background sessions on Linux.")
    open var attemptsToRecreateUploadTasksForBackgroundSessions: Bool {
        get { state.withLock { $0.attemptsToRecreateUploads } }
        set { state.withLock { $0.attemptsToRecreateUploads = newValue } }
    }

    /// The serializer and the queue for a response that is complete now, including overrides in a subclass.
    var delivery: TaskDelivery {
        let serializer = anyResponseSerializer
        let manager = serializer is AFHTTPResponseSerializer ? self as? AFHTTPSessionManager : nil
        return TaskDelivery(
            serializer: manager?.responseSerializer ?? serializer,
            completionQueue: CompletionQueue(queue: completionQueue, group: completionGroup))
    }

    // MARK: Tasks

    /// The tasks that have not ended, including suspended ones: data tasks, then upload tasks, then download tasks.
    open var tasks: [URLSessionTask] { dataTasks + uploadTasks + downloadTasks }

    /// The data tasks that have not ended, oldest first, including suspended ones.
    open var dataTasks: [URLSessionDataTask] {
        allTasks().filter { !($0 is URLSessionUploadTask) }.compactMap { $0 as? URLSessionDataTask }
    }

    /// The upload tasks that have not ended, oldest first, including suspended ones.
    open var uploadTasks: [URLSessionUploadTask] { allTasks().compactMap { $0 as? URLSessionUploadTask } }

    /// The download tasks that have not ended, oldest first, including suspended ones.
    open var downloadTasks: [URLSessionDownloadTask] { allTasks().compactMap { $0 as? URLSessionDownloadTask } }

    /// Returns the tasks that have not ended, oldest first: those of a session of the given generation, or all. The
    /// manager retains a task until its end has been reported.
    func allTasks(of generation: Int? = nil) -> [URLSessionTask] {
        state.withLock { $0.tasks(of: generation) }.filter { $0.state != .completed }
    }

    /// Creates a suspended task that collects the response in memory; a body of more than 128 MiB after decompression
    /// fails with -1103, unless a shared session sets another limit. Call `resume()` to start it.
    ///
    /// - Parameters:
    ///   - request: The request to send. A timeout of 60 seconds, Foundation's default, means that of the session; 0 or
    ///     less means none.
    ///   - uploadProgress: Called with the progress of the request body, on the manager's own serial queue; `nil` for
    ///     none.
    ///   - downloadProgress: Called with the progress of the response body after decompression, on the manager's own
    ///     serial queue; `nil` for none.
    ///   - completionHandler: Called on ``completionQueue`` with the response, an empty `URLResponse` without one,
    ///     the object of the response serializer, if any, and the error of the transfer or the serializer, if any;
    ///     there may be both. `nil`, the default, for no handler.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await session.data(for: …) of AsyncNetworking.")
    #endif
    @preconcurrency
    open func dataTask(
        with request: URLRequest, uploadProgress: (@Sendable (Progress) -> Void)?,
        downloadProgress: (@Sendable (Progress) -> Void)?,
        completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)? = nil
    ) -> URLSessionDataTask {
        makeDataTask(.given(request), uploadProgress, downloadProgress, Self.completion(completionHandler))
    }

    /// Creates a suspended task that collects the response in memory, without progress, as in AFNetworking 3. See
    /// ``dataTask(with:uploadProgress:downloadProgress:completionHandler:)``, which it calls.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await session.data(for: …) of AsyncNetworking.")
    #endif
    @preconcurrency
    open func dataTask(
        with request: URLRequest, completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)? = nil
    ) -> URLSessionDataTask {
        dataTask(with: request, uploadProgress: nil, downloadProgress: nil, completionHandler: completionHandler)
    }

    /// Creates a suspended task that sends a file, and collects the response in memory; a body of more than 128 MiB
    /// after decompression fails with -1103, unless a shared session sets another limit. Call `resume()` to start it.
    ///
    /// - Parameters:
    ///   - request: The request to send, whose own body is ignored. A timeout of 60 seconds, Foundation's default,
    ///     means that of the session; 0 or less means none.
    ///   - fileURL: The file, which is read each time the body is sent; the task fails with -1100 if it cannot be read.
    ///   - progress: Called with the progress of the request body, on the manager's own serial queue; `nil` for none.
    ///   - completionHandler: Called on ``completionQueue`` with the response, an empty `URLResponse` without one,
    ///     the object of the response serializer, if any, and the error of the transfer or the serializer, if any;
    ///     there may be both. `nil`, the default, for no handler.
    #if MigrationHints
        @available(*, deprecated, message: "Use session.makeUploadTask(for: …) of AsyncNetworking.")
    #endif
    @preconcurrency
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL, progress: (@Sendable (Progress) -> Void)?,
        completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)? = nil
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL.path), progress, Self.completion(completionHandler))
    }

    /// Creates a suspended task that sends data, and collects the response in memory; a body of more than 128 MiB after
    /// decompression fails with -1103, unless a shared session sets another limit. Call `resume()` to start it.
    ///
    /// - Parameters:
    ///   - request: The request to send. A timeout of 60 seconds, Foundation's default, means that of the session; 0 or
    ///     less means none.
    ///   - bodyData: The body; `nil` sends the body of the request.
    ///   - progress: Called with the progress of the request body, on the manager's own serial queue; `nil` for none.
    ///   - completionHandler: Called on ``completionQueue`` with the response, an empty `URLResponse` without one,
    ///     the object of the response serializer, if any, and the error of the transfer or the serializer, if any;
    ///     there may be both. `nil`, the default, for no handler.
    #if MigrationHints
        @available(*, deprecated, message: "Use session.makeUploadTask(for: …) of AsyncNetworking.")
    #endif
    @preconcurrency
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?, progress: (@Sendable (Progress) -> Void)?,
        completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)? = nil
    ) -> URLSessionUploadTask {
        makeUploadTask(request, bodyData.map(RequestBody.bytes), progress, Self.completion(completionHandler))
    }

    /// Creates a suspended task that sends the body of the request, such as a multipart form, and collects the response
    /// in memory; a body of more than 128 MiB after decompression fails with -1103, unless a shared session sets
    /// another limit. Call `resume()` to start it.
    ///
    /// - Parameters:
    ///   - request: The request to send. If the size of its body is known, as for a multipart form or from a
    ///     `Content-Length`, it is sent as `Content-Length`, unlike in AFNetworking. A timeout of 60 seconds,
    ///     Foundation's default, means that of the session; 0 or less means none.
    ///   - progress: Called with the progress of the request body, on the manager's own serial queue; `nil` for none.
    ///   - completionHandler: Called on ``completionQueue`` with the response, an empty `URLResponse` without one,
    ///     the object of the response serializer, if any, and the error of the transfer or the serializer, if any;
    ///     there may be both. `nil`, the default, for no handler.
    #if MigrationHints
        @available(*, deprecated, message: "Use session.makeUploadTask(for: …) of AsyncNetworking.")
    #endif
    @preconcurrency
    open func uploadTask(
        withStreamedRequest request: URLRequest, progress: (@Sendable (Progress) -> Void)?,
        completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)? = nil
    ) -> URLSessionUploadTask {
        makeUploadTask(request, nil, progress, Self.completion(completionHandler))
    }

    /// Creates a suspended task that writes the response body to a file, for any status. Call `resume()` to start it.
    /// The moved file has the permissions of a new one.
    ///
    /// The response serializer receives the response with an empty body; its error is passed with the URL. If the file
    /// cannot be moved, only `AFURLSessionDownloadTaskDidFailToMoveFile` reports it: the URL is passed nevertheless.
    ///
    /// - Parameters:
    ///   - request: The request to send. A timeout of 60 seconds, Foundation's default, means that of the session; 0 or
    ///     less means none.
    ///   - progress: Called with the progress of the body before decompression, on the manager's own serial queue;
    ///     `nil` for none.
    ///   - destination: Returns an unused URL for the file, on the manager's own serial queue, given its temporary URL
    ///     and the response; not called if the manager's own block returns one. Without a URL, as with `nil`, the file
    ///     is removed.
    ///   - completionHandler: Called on ``completionQueue`` with the response, an empty `URLResponse` without one,
    ///     the URL of the file, and the error, if any. The URL is `nil` if the transfer failed or there was no
    ///     destination. `nil`, the default, for no handler.
    #if MigrationHints
        @available(*, deprecated, message: "Use session.makeDownloadTask(for: …) of AsyncNetworking.")
    #endif
    @preconcurrency
    open func downloadTask(
        with request: URLRequest, progress: (@Sendable (Progress) -> Void)?,
        destination: (@Sendable (URL, URLResponse) -> URL)?,
        completionHandler: (@Sendable (URLResponse, URL?, (any Error)?) -> Void)? = nil
    ) -> URLSessionDownloadTask {
        makeDownloadTask(request, nil, progress, destination, completionHandler)
    }

    /// Creates a suspended task that resumes a download that was cancelled or has failed, or starts it over if this is
    /// not possible. Call `resume()` to start it.
    ///
    /// It sends a GET request with the timeout and the cache policy of the session. Statuses, the response serializer
    /// and a file that cannot be moved are treated as by
    /// ``downloadTask(with:progress:destination:completionHandler:)``.
    ///
    /// - Parameters:
    ///   - resumeData: The data from `cancel(byProducingResumeData:)` or ``NSURLSessionDownloadTaskResumeData``, which
    ///     contains the request, but by default not its `Authorization` and `Cookie` fields: only the manager of the
    ///     download, while it exists, adds them again. If it is not valid, the task fails with -1000.
    ///   - progress: Called with the progress of the body before decompression, on the manager's own serial queue;
    ///     `nil` for none.
    ///   - destination: Returns an unused URL for the file, on the manager's own serial queue, given its temporary URL
    ///     and the response; not called if the manager's own block returns one. Without a URL, as with `nil`, the file
    ///     is removed.
    ///   - completionHandler: Called on ``completionQueue`` with the response, an empty `URLResponse` without one,
    ///     the URL of the file, and the error, if any. The URL is `nil` if the transfer failed or there was no
    ///     destination. `nil`, the default, for no handler.
    #if MigrationHints
        @available(*, deprecated, message: "Use session.makeDownloadTask(resuming: …) of AsyncNetworking.")
    #endif
    @preconcurrency
    open func downloadTask(
        withResumeData resumeData: Data, progress: (@Sendable (Progress) -> Void)?,
        destination: (@Sendable (URL, URLResponse) -> URL)?,
        completionHandler: (@Sendable (URLResponse, URL?, (any Error)?) -> Void)? = nil
    ) -> URLSessionDownloadTask {
        let data = try? JSONDecoder().decodeUntrusted(ResumeData.self, from: resumeData)
        // A request without a URL fails when it is sent.
        var request = URLRequest(url: data?.url ?? URL(filePath: "/"))
        request.allHTTPHeaderFields = data.map(fields(of:))
        if data == nil { request.url = nil }
        return makeDownloadTask(request, data, progress, destination, completionHandler)
    }

    /// Creates a task that collects the response in memory.
    func makeDataTask(
        _ request: OriginalRequest, _ uploadProgress: (@Sendable (Progress) -> Void)?,
        _ downloadProgress: (@Sendable (Progress) -> Void)?, _ completion: TaskCallbacks.Completion?
    ) -> URLSessionDataTask {
        let callbacks = TaskCallbacks(
            uploadProgress: uploadProgress, downloadProgress: downloadProgress, completion: completion)
        return AFDataTask(TaskDriver(self, request, .data, callbacks))
    }

    /// Creates a task that sends a body, or that of the request if it is `nil`.
    func makeUploadTask(
        _ request: URLRequest, _ body: RequestBody?, _ progress: (@Sendable (Progress) -> Void)?,
        _ completion: TaskCallbacks.Completion?
    ) -> URLSessionUploadTask {
        let callbacks = TaskCallbacks(uploadProgress: progress, completion: completion)
        return AFUploadTask(TaskDriver(self, .given(request), .upload(body), callbacks))
    }

    private static func completion(
        _ handler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
    ) -> TaskCallbacks.Completion? {
        handler.map { handler in { @Sendable response, _, object, error in handler(response(), object, error) } }
    }

    private func makeDownloadTask(
        _ request: URLRequest, _ resumeData: ResumeData?, _ progress: (@Sendable (Progress) -> Void)?,
        _ destination: (@Sendable (URL, URLResponse) -> URL)?,
        _ completionHandler: (@Sendable (URLResponse, URL?, (any Error)?) -> Void)? = nil
    ) -> URLSessionDownloadTask {
        let completion = Self.completion(
            completionHandler.map { handler in
                { @Sendable response, file, error in handler(response, file as? URL, error) }
            })
        let callbacks = TaskCallbacks(downloadProgress: progress, destination: destination, completion: completion)
        return AFDownloadTask(TaskDriver(self, .given(request), .download(resumeData), callbacks))
    }

    /// Returns the progress of a task's request body, which can cancel, pause and resume the task; `nil` if the task
    /// has ended or does not belong to this manager. Its total is -1 while unknown.
    open func uploadProgress(for task: URLSessionTask) -> Progress? {
        driver(of: task)?.progress(\.uploadProgress)
    }

    /// Returns the progress of a task's response body, which can cancel, pause and resume the task; `nil` if the task
    /// has ended or does not belong to this manager. Its total is -1 while unknown, as for a compressed body of a data
    /// task.
    open func downloadProgress(for task: URLSessionTask) -> Progress? {
        driver(of: task)?.progress(\.downloadProgress)
    }

    private func driver(of task: URLSessionTask) -> TaskDriver? {
        guard let driver = (task as? any DrivenTask)?.driver, driver.manager === self else { return nil }
        return driver.taskState == .completed ? nil : driver
    }

    // MARK: Copies and archives

    /// Creates a manager from an archive of its configuration; with the default one if the archive has none. The
    /// response serializer, the security policy and all other parts have their defaults. Never returns `nil`.
    public required init?(coder: NSCoder) {
        let configuration =
            (coder as? CopyCoder)?.configuration
            ?? coder.decodeValue(ArchivedConfiguration.self, forKey: "sessionConfiguration")?.configuration
        super.init()
        state.withLock { $0 = ManagerState(configuration ?? .default) }
    }

    /// Archives the settings that the manager uses from its configuration, except its `URLCache` and its cookies: a
    /// manager with an `HTTPCookieStorage` of its own is restored with an empty one. Header fields are archived in clear
    /// text. A shared AsyncNetworking session is not archived.
    open func encode(with coder: NSCoder) {
        coder.encodeValue(ArchivedConfiguration(state.withLock { $0.configuration }), forKey: "sessionConfiguration")
    }

    /// Always `true`: archives can be decoded with `requiresSecureCoding`.
    open class var supportsSecureCoding: Bool { true }

    /// Returns a manager of the same class with the same configuration or shared session, and otherwise the defaults:
    /// its security policy, serializer, queue, group and blocks are not copied.
    ///
    /// A copy of a subclass is created by its `init(coder:)` from what its `encode(with:)` encodes, without an archive;
    /// if that returns `nil`, the copy is an ``AFURLSessionManager``.
    open func copy(with zone: NSZone? = nil) -> Any {
        copyOfSubclass() ?? AFURLSessionManager(sessionConfiguration: copiedConfiguration)
    }

    /// Returns a copy that the initializer of a subclass creates; `nil` for a class of this module.
    func copyOfSubclass() -> AFURLSessionManager? {
        guard isSubclassed else { return nil }
        let coder = CopyCoder(copiedConfiguration)
        encode(with: coder)
        return type(of: self).init(coder: coder)
    }

    /// The configuration for a copy. If this manager shares a core session, the copy shares it, too.
    var copiedConfiguration: URLSessionConfiguration {
        state.withLock { $0.isShared ? .sharing($0.core, adding: $0.configuration) : $0.configuration }
    }

    /// The manager's class, address, session and number of unfinished tasks, as text for logs.
    open override var description: String {
        "<\(type(of: self)): \(ObjectIdentifier(self)), session: \(coreSession), tasks: \(tasks.count)>"
    }
}
