// SPDX-License-Identifier: MIT

import Glibc

/// An HTTP client to be measured. The conforming type is the `@main` of its process.
package protocol BenchmarkClient: Sendable {
    init(_ options: Options) throws

    /// Fetches the URL and collects the body.
    func get() async throws
    /// Sends an ``Order`` as JSON and decodes the response, a ``Customer``.
    func post() async throws
    func download(to file: OutputFile) async throws
    func upload(from path: String) async throws
    /// Reads the body as a stream and pauses after each chunk for the duration from `consumer`.
    func stream(to consumer: SlowConsumer) async throws
    func shutDown() async throws

    /// The executor of the requests' tasks; `nil`, the default, for the default one.
    var taskExecutor: (any TaskExecutor)? { get }
}

extension BenchmarkClient {
    package var taskExecutor: (any TaskExecutor)? { nil }

    /// Not async, because valgrind 3.19 fails in the sigsuspend(2) with which the main thread of an async program waits.
    package static func main() {
        Task { @concurrent in
            await run()
            exit(0)
        }
        while true { pause() }
    }

    private static func run() async {
        do {
            let options = try Options(commandLine: CommandLine.arguments)
            let client = try Self(options)
            try await client.perform(options, requests: options.warmUp)
            let (cpu, start) = (processorSeconds(), ContinuousClock.now)
            try await client.perform(options, requests: options.requests)
            let wall = (ContinuousClock.now - start) / .seconds(1)
            print("{\"requests\": \(options.requests), \"wall_s\": \(wall), \"cpu_s\": \(processorSeconds() - cpu)}")
            try await client.shutDown()
        } catch {
            let message = "\(Self.self): \(error)\n"
            _ = write(STDERR_FILENO, message, message.utf8.count)
            exit(1)
        }
    }

    private func perform(_ options: Options, requests: Int) async throws {
        let workers = min(options.inFlight, requests)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<workers {
                let share = requests / workers + (worker < requests % workers ? 1 : 0)
                let work: @concurrent @Sendable () async throws -> Void = {
                    for _ in 0..<share { try await performOnce(options) }
                }
                // Even a preference of `nil` has each change of executors take a lock.
                if let taskExecutor {
                    group.addTask(executorPreference: taskExecutor, operation: work)
                } else {
                    group.addTask(operation: work)
                }
            }
            try await group.waitForAll()
        }
    }

    private func performOnce(_ options: Options) async throws {
        switch options.workload {
        case "get", "connect": try await get()
        case "post": try await post()
        case "download": try await download(to: OutputFile(path: options.file ?? "/dev/null"))
        case "upload": try await upload(from: options.file ?? "/dev/null")
        case "stream": try await stream(to: SlowConsumer())
        default: throw Failure("there is no workload \(options.workload)")
        }
    }
}

/// Returns the processor time of this process so far, user and system.
private func processorSeconds() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    let times = [usage.ru_utime, usage.ru_stime]
    return times.map { Double($0.tv_sec) + Double($0.tv_usec) / 1_000_000 }.reduce(0, +)
}
