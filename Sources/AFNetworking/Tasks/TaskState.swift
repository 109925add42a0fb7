// SPDX-License-Identifier: MIT

import AsyncNetworking

/// Where a task is, and what is known of it.
struct TaskState: Sendable {
    /// The manager keeps it until it is over.
    var task: WeakTask?
    var source: TaskSource
    private(set) var callbacks: Handover<TaskCallbacks>
    private(set) var phase = URLSessionTask.State.suspended
    /// The core's task, from before its work begins.
    var core: TransferCore?
    /// What keeps the core's task.
    var work: TaskWork?
    /// Whether the work was begun, or would have been.
    private(set) var wasStarted = false

    var head: ResponseHead?
    var response: HTTPURLResponse?
    var counts = TaskCounts()
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
    /// What has arrived of a response that is collected.
    var data = Data()

    init(source: TaskSource, callbacks: TaskCallbacks) {
        self.source = source
        self.callbacks = Handover(callbacks)
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

    /// Starts with its task.
    mutating func begin(_ task: URLSessionTask) {
        self.task = WeakTask(task)
        phase = .running
        wasStarted = true
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

    /// Gives away what a completion handler is told of.
    mutating func takeOutcome() -> TaskOutcome {
        defer { data = Data() }
        return TaskOutcome(core: core, head: head, data: data, place: place, challengeError: challengeError)
    }

    /// Is over; gives away what was kept for the way.
    mutating func finish(
        _ error: (any Error)?
    ) -> (callbacks: Handover<TaskCallbacks>, task: URLSessionTask?, dataTask: URLSessionDataTask?) {
        defer {
            callbacks = Handover(TaskCallbacks())
            dataTask = nil
        }
        phase = .completed
        self.error = error
        let task = task?.value
        return (callbacks, task, dataTask ?? task as? URLSessionDataTask)
    }
}

/// What a task has brought.
struct TaskOutcome {
    let core: TransferCore?
    let head: ResponseHead?
    let data: Data
    let place: URL?
    let challengeError: (any Error)?
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
struct TaskCallbacks {
    var uploadProgress: ((Progress) -> Void)?
    var downloadProgress: ((Progress) -> Void)?
    var destination: ((URL, URLResponse) -> URL)?
    var completion = Completion.none

    /// What is called when a task is over.
    enum Completion {
        /// Nothing.
        case none
        /// The blocks of a verb.
        case blocks(
            success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?)
        /// The completion handler of a task that collects.
        case object((URLResponse, Any?, (any Error)?) -> Void)
        /// The completion handler of a download.
        case file((URLResponse, URL?, (any Error)?) -> Void)
    }
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
