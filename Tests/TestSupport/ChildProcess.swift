// SPDX-License-Identifier: MIT

import ANSystem
import CTestSupport
import Glibc

/// A started program. A thread of its own collects the output and waits for the end, so that a waiting test blocks no
/// thread of the concurrency pool.
///
/// Foundation's `Process` is no alternative: its `run()` reads beyond the end of a buffer of readdir(3).
package final class ChildProcess: Sendable {
    private let number: pid_t
    private let state = Lock(State())

    private struct State {
        var result: Result<Command.Outcome, any Error>?
        var waiting: [CheckedContinuation<Command.Outcome, any Error>] = []
        /// Whether the program has not been waited for; afterwards its number may be that of another process.
        var ownsNumber = true
    }

    /// Starts a program.
    package init(_ command: Command) throws {
        let output = try Pipe()
        let errors = try Pipe()
        number = try command.spawn(output: output.writer.number, errors: errors.writer.number)
        let readers = [output.releaseReader(), errors.releaseReader()]
        do {
            try SystemThread(name: "child process") { [self] in
                finish(Self.collect(readers, upTo: command.maximumOutput), limit: command.maximumOutput)
            }.detach()
        } catch {
            readers.forEach { close($0) }
            kill()
            waitpid(number, nil, 0)
            throw error
        }
    }

    /// Waits for the end of the program. If the task is cancelled, kills the program.
    package func outcome() async throws -> Command.Outcome {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state in
                    if state.result == nil { state.waiting.append(continuation) }
                    return state.result
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            kill()
        }
    }

    /// Kills the program and its process group, unless it has ended.
    package func kill() { send(SIGKILL) }

    /// Sends a signal to the program and its process group, unless it has ended.
    package func send(_ signal: Int32) {
        state.withLock { if $0.ownsNumber { _ = Glibc.kill(-number, signal) } }
    }

    /// Reads the output and the errors to their ends, and closes both. Returns `nil` as soon as one exceeds the limit.
    private static func collect(_ readers: [Int32], upTo limit: Int) -> [[UInt8]]? {
        defer { readers.forEach { close($0) } }
        var collected: [[UInt8]] = readers.map { _ in [] }
        var events = readers.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        // poll(2) ignores negative descriptors.
        while events.contains(where: { $0.fd >= 0 }) {
            guard retryingInterrupts({ unsafe poll(&events, nfds_t(events.count), -1) }) > 0 else { break }
            for index in events.indices where events[index].revents != 0 {
                let count = retryingInterrupts { unsafe read(readers[index], &buffer, buffer.count) }
                if count <= 0 { events[index].fd = -1 }
                collected[index] += buffer[..<max(count, 0)]
                if collected[index].count > limit { return nil }
            }
        }
        return collected
    }

    private func finish(_ collected: [[UInt8]]?, limit: Int) {
        if collected == nil { kill() }
        var information = unsafe siginfo_t()
        // The number is freed under the lock only, so that `kill` never finds another process with it.
        _ = retryingInterrupts { unsafe waitid(P_PID, id_t(number), &information, WEXITED | WNOWAIT) }
        let (result, waiting) = state.withLock { state in
            var status: Int32 = 0
            unsafe waitpid(number, &status, 0)
            let code = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
            let result: Result<Command.Outcome, any Error> =
                if let collected {
                    .success(Command.Outcome(status: code, output: collected[0], errors: collected[1]))
                } else {
                    .failure(Command.Failure.tooMuchOutput(limit: limit))
                }
            state.ownsNumber = false
            state.result = result
            defer { state.waiting = [] }
            return (result, state.waiting)
        }
        for continuation in waiting { continuation.resume(with: result) }
    }
}

/// A pipe whose ends are closed in programs, except where they are passed on.
private struct Pipe: ~Copyable {
    let reader: FileDescriptor
    let writer: FileDescriptor

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe2(&ends, O_CLOEXEC) == 0 else { throw SystemError.last("pipe2") }
        reader = FileDescriptor(takingOwnershipOf: ends[0])
        writer = FileDescriptor(takingOwnershipOf: ends[1])
    }

    /// Closes the writing end, and releases ownership of the reading end.
    consuming func releaseReader() -> Int32 {
        reader.release()
    }
}
