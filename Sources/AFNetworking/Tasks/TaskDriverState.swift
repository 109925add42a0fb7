// SPDX-License-Identifier: MIT

import AsyncNetworking

/// The state of a task.
struct TaskDriverState: Sendable {
    /// The manager; `nil` when the task has ended.
    private(set) var manager: AFURLSessionManager?
    /// The task object. The reference is weak; the manager retains the task until it ends.
    var task = Weak<URLSessionTask>()
    private(set) var callbacks: TaskCallbacks
    private(set) var phase = URLSessionTask.State.suspended
    /// The core task; set before its transfer begins.
    var core: TaskCore?
    /// The handle of the core task. Releasing it cancels a core task that was never resumed.
    var owner: (any Sendable)?
    /// Whether the task was resumed or cancelled at least once.
    private(set) var wasStarted = false

    var head: ResponseHead?
    var response: HTTPURLResponse?
    var counts = TaskCounts()
    var error: (any Error)?
    var uploadProgress: Progress?
    var downloadProgress: Progress?
    /// The data task that became a download task, which writes the response to a file. Callbacks receive it until the
    /// task ends.
    var dataTask: URLSessionDataTask?
    var priority = URLSessionTask.defaultPriority
    /// The security policy with which the task started; `nil` for that of a shared session.
    var securityPolicy: AFSecurityPolicy?
    /// The error with which the challenge handler ended the task.
    var challengeError: (any Error)?
    /// The URL to which the download was moved.
    var destinationURL: URL?
    /// Whether the temporary file has the body of the download's own response, which was rejected.
    var hasWrittenRejection = false
    /// The resume data of a download whose continuation the server rejected; the body of the rejection was moved.
    var resumeData: ResumeData?
    /// The part of the body received so far, if it is collected in memory.
    var data = Data()

    init(_ manager: AFURLSessionManager, _ callbacks: TaskCallbacks) {
        self.manager = manager
        self.callbacks = callbacks
    }

    /// Changes the phase if it is one of the given ones. Returns whether it is the first change; `nil` if the phase is
    /// another one.
    mutating func enter(_ next: URLSessionTask.State, from phases: [URLSessionTask.State]) -> Bool? {
        guard phases.contains(phase) else { return nil }
        defer { wasStarted = true }
        phase = next
        return !wasStarted
    }

    /// Takes the head of a response, whose body follows.
    mutating func receive(_ head: ResponseHead) {
        self.head = head
        response = nil
        counts.received = 0
        counts.expectedToReceive = head.expectedContentLength
    }

    /// Whether the progress of the upload is observed.
    var isUploadWatched: Bool { callbacks.uploadProgress != nil || uploadProgress != nil }
    /// Whether the progress of the download is observed.
    var isDownloadWatched: Bool { callbacks.downloadProgress != nil || downloadProgress != nil }

    /// Ends the task. Returns the callbacks and the task objects that they receive, and releases them and the manager,
    /// which the caller retains.
    mutating func finish(
        _ error: (any Error)?
    ) -> (callbacks: TaskCallbacks, task: URLSessionTask?, dataTask: URLSessionDataTask?) {
        defer {
            callbacks = TaskCallbacks()
            dataTask = nil
            manager = nil
        }
        phase = .completed
        self.error = error
        let task = task.object
        return (callbacks, task, dataTask ?? task as? URLSessionDataTask)
    }
}

/// The kind of a task.
enum TaskSource: Sendable {
    /// Sends a request and collects the response in memory.
    case data
    /// Sends a body, or that of the request if it is `nil`.
    case upload(RequestBody?)
    /// Writes the response to a file, from the beginning or after the bytes that the resume data describes.
    case download(ResumeData?)

    /// The data of an earlier download that this one continues.
    var resumeData: ResumeData? { if case .download(let data) = self { data } else { nil } }

    var isUpload: Bool { if case .upload = self { true } else { false } }
    var isDownload: Bool { if case .download = self { true } else { false } }
}

/// The callbacks of a task.
struct TaskCallbacks: Sendable {
    var uploadProgress: (@Sendable (Progress) -> Void)?
    var downloadProgress: (@Sendable (Progress) -> Void)?
    var destination: (@Sendable (URL, URLResponse) -> URL)?
    var completion: Completion?

    /// A callback at the end of a task. It takes a function that returns the response, the task if it is a data task,
    /// the object and the error.
    typealias Completion = @Sendable (() -> URLResponse, URLSessionDataTask?, Any?, (any Error)?) -> Void
}

/// The numbers of bytes transferred and expected; -1 if a total is unknown.
struct TaskCounts: Sendable {
    var sent: Int64 = 0
    /// The part of the current exchange in ``sent``: 0 until it sends the body, too.
    var sentInExchange: Int64 = 0
    var received: Int64 = 0
    var expectedToSend = NSURLSessionTransferSizeUnknown
    var expectedToReceive = NSURLSessionTransferSizeUnknown
}

extension ResumeData {
    /// The resume data encoded as Foundation has it: opaque bytes.
    var archived: Data? { try? JSONEncoder().encode(self) }
}
