// SPDX-License-Identifier: MIT

import AsyncNetworking

/// Where a task is, and what is known of it.
struct TaskState: Sendable {
    var task: WeakTask?
    /// The task itself while it runs.
    var running: URLSessionTask?
    var source: TaskSource
    var callbacks: TaskCallbacks
    private(set) var phase = URLSessionTask.State.suspended
    private(set) var work: TaskWork?
    private var wasStarted = false

    var current: Request?
    var head: ResponseHead?
    var response: HTTPURLResponse?
    var counts = TaskCounts()
    var metrics: [TransferMetrics] = []
    var error: (any Error)?
    var uploadProgress: Progress?
    var downloadProgress: Progress?
    /// The task that has become a download, which callbacks are told of until it is over.
    var dataTask: URLSessionDataTask?
    var description: String?
    var priority = URLSessionTask.defaultPriority
    /// What the handler of challenges has ended the task with.
    var challengeError: (any Error)?
    /// Where the download was put.
    var place: URL?
    /// What arrived before the transfer failed.
    var partialData = Data()

    init(source: TaskSource, callbacks: TaskCallbacks) {
        self.source = source
        self.callbacks = callbacks
    }

    /// What a change asks for.
    enum Step {
        /// Nothing.
        case none
        /// That the work begins, or ends before it began.
        case start
        /// That the core's task is told.
        case goOn(TaskWork)
    }

    mutating func resume() -> Step {
        guard phase == .suspended else { return .none }
        phase = .running
        guard wasStarted else {
            wasStarted = true
            return .start
        }
        return work.map(Step.goOn) ?? .none
    }

    mutating func suspend() -> Step {
        guard phase == .running else { return .none }
        phase = .suspended
        return work.map(Step.goOn) ?? .start
    }

    mutating func cancel() -> Step {
        guard phase == .suspended || phase == .running else { return .none }
        phase = .canceling
        guard wasStarted else {
            wasStarted = true
            return .start
        }
        return work.map(Step.goOn) ?? .none
    }

    /// Keeps the work, unless there is some.
    mutating func keep(_ made: TaskWork) -> TaskWork {
        let kept = work ?? made
        work = kept
        return kept
    }

    /// Is over; gives away what was kept for the way.
    mutating func finish(_ error: (any Error)?) -> (callbacks: TaskCallbacks, task: URLSessionTask?) {
        defer {
            callbacks = TaskCallbacks()
            running = nil
        }
        phase = .completed
        self.error = error
        return (callbacks, running ?? task?.value)
    }
}

/// What a task does.
enum TaskSource: Sendable {
    /// Sends a request and collects the response.
    case data
    /// Sends a body, or that of the request.
    case upload(RequestBody?)
    /// Writes the response to a file, from the beginning or after what is there.
    case download(ResumeData?)
    /// Writes the response to a file after all.
    case dataToFile

    var isUpload: Bool { if case .upload = self { true } else { false } }
    var isToFile: Bool { if case .dataToFile = self { true } else { false } }

    var kind: SessionTask.Kind {
        switch self {
        case .data, .dataToFile: .data
        case .upload: .upload
        case .download: .download
        }
    }
}

/// What a task was given to call.
struct TaskCallbacks: Sendable {
    var uploadProgress: Handover<(Progress) -> Void>?
    var downloadProgress: Handover<(Progress) -> Void>?
    var destination: Handover<(URL, URLResponse) -> URL>?
    var completion: Handover<(TaskDriver, Any?, (any Error)?) -> Void>?
}

/// How much a task has moved; -1 where the whole is not known.
struct TaskCounts: Sendable {
    var sent: Int64 = 0
    var received: Int64 = 0
    var expectedToSend = NSURLSessionTransferSizeUnknown
    var expectedToReceive = NSURLSessionTransferSizeUnknown
}

/// A task that does not stay because of this.
struct WeakTask: Sendable {
    private(set) weak var value: URLSessionTask?

    init(_ task: URLSessionTask? = nil) {
        value = task
    }
}

/// A task of this module's.
protocol DrivenTask: URLSessionTask {
    var driver: TaskDriver { get }
}
