// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// The signals of the process, for tasks that wait for some of them.
///
/// A signal is caught while a task waits for it, and has its earlier effect before and afterwards: also the second of two
/// that follow each other at once, unless they arrive as one (signal(7)). A handler that the program installs meanwhile
/// stays; it may call the one of this type, without an effect outside of waits, and the program may put that back, which
/// restores the earlier effect. The handler of this type writes its number to a pipe, because it may call almost nothing
/// (signal-safety(7)); a thread reads the pipe, and lives as long as the process.
package final class SignalWatch: Sendable {
    /// The process's watch: there is one handler for each signal.
    package static let shared = SignalWatch()

    private let state = Lock(State())

    private struct State {
        /// The writing end of the pipe, which stays open; `nil` before the first wait.
        var pipe: Int32?
        var waiting: [Int: Waiter] = [:]
        var lastWaiter = 0
        /// The actions that signals had before they were caught last.
        var earlier: [Int32: sigaction] = [:]
        /// The actions that signals had before a wait in which the program has replaced the handler of this type. It may put
        /// that back, or call it.
        var beneath: [Int32: sigaction] = [:]
        /// The handlers by which the program has replaced that of this type, any of which may call it.
        var others: [Int32: Set<UInt>] = [:]

        /// The signals that are caught.
        var caught: Set<Int32> { Set(waiting.values.flatMap(\.signals)) }

        /// Catches the signals that are not caught yet; if one cannot be, none of them.
        mutating func `catch`(_ signals: Set<Int32>, writingTo pipe: Int32) throws(SystemError) {
            var added: Set<Int32> = []
            for signal in signals.subtracting(caught) {
                var action = sigaction()
                guard unsafe clinux_catch_signal(signal, pipe, &action) == 0 else {
                    let error = SystemError.last("sigaction")
                    release(added)
                    throw error
                }
                // The program may have put back the handler of an earlier wait.
                earlier[signal] = unsafe clinux_is_noted(&action) ? beneath[signal] ?? earlier[signal] : action
                added.insert(signal)
            }
        }

        private mutating func release(_ signals: Set<Int32>) {
            for signal in signals where !restore(earlier[signal], of: signal) {
                beneath[signal] = earlier[signal]
                let handler = handler(of: signal)
                if handler != 0 { others[signal, default: []].insert(handler) }
            }
        }

        /// Restores an action of a signal. Returns `false` if the program has given it another one meanwhile.
        private func restore(_ action: sigaction?, of signal: Int32) -> Bool {
            guard var action else { return false }
            return unsafe clinux_release_signal(signal, &action)
        }

        /// The address of the current handler of a signal; 0 without one.
        private func handler(of signal: Int32) -> UInt {
            var action = sigaction()
            return unsafe sigaction(signal, nil, &action) == 0 ? clinux_handler(&action) : 0
        }

        /// Removes a waiter, and restores the effect of the signals for which no other one waits.
        mutating func remove(_ number: Int) -> Waiter? {
            guard let waiter = waiting.removeValue(forKey: number) else { return nil }
            release(waiter.signals.subtracting(caught))
            return waiter
        }

        /// Returns the waiters for a signal that was received, and whether it must be sent again: it arrived before the last
        /// one was removed, which has restored its effect, or after the program has put the handler back.
        ///
        /// - Parameter hadOther: Whether the signal had another handler when it was received.
        mutating func receive(_ signal: Int32, hadOther: Bool) -> (waiters: [Waiter], isRepeated: Bool) {
            let numbers = waiting.filter { $0.value.signals.contains(signal) }.keys.sorted()
            guard numbers.isEmpty else { return (numbers.compactMap { remove($0) }, false) }
            if restore(beneath[signal] ?? earlier[signal], of: signal) { return ([], true) }
            guard hadOther, var action = earlier[signal] else { return ([], true) }
            // Otherwise it has had its effect, and a handler of the program has called this one.
            let handler = handler(of: signal)
            return ([], unsafe handler == clinux_handler(&action) && others[signal]?.contains(handler) != true)
        }
    }

    private struct Waiter {
        let signals: Set<Int32>
        let continuation: CheckedContinuation<Int32, any Error>
    }

    /// The number of tasks that wait for signals.
    package var waitingTasks: Int { state.withLock { $0.waiting.count } }

    /// Waits for one of some signals, and returns its number.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, and ``SystemError`` for a signal that cannot be caught.
    package func first(of signals: Set<Int32>) async throws -> Int32 {
        let number = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                add(Waiter(signals: signals, continuation: continuation), number)
                // The task may have been cancelled before the waiter was added.
                if Task.isCancelled { cancel(number) }
            }
        } onCancel: {
            cancel(number)
        }
    }

    private func add(_ waiter: Waiter, _ number: Int) {
        do {
            try state.withLock { state throws(SystemError) in
                let pipe = if let pipe = state.pipe { pipe } else { try start() }
                state.pipe = pipe
                try state.catch(waiter.signals, writingTo: pipe)
                state.waiting[number] = waiter
            }
        } catch {
            waiter.continuation.resume(throwing: error)
        }
    }

    private func cancel(_ number: Int) {
        state.withLock { $0.remove(number) }?.continuation.resume(throwing: CancellationError())
    }

    private func receive(_ byte: UInt8) {
        let signal = Int32(byte & ~CLINUX_OTHER_HANDLER)
        let (waiters, isRepeated) = state.withLock { $0.receive(signal, hadOther: byte & CLINUX_OTHER_HANDLER != 0) }
        if isRepeated { kill(getpid(), signal) }
        for waiter in waiters { waiter.continuation.resume(returning: signal) }
    }

    /// Creates the pipe and the thread that reads it, and returns the writing end.
    private func start() throws(SystemError) -> Int32 {
        var ends: [Int32] = [-1, -1]
        guard unsafe clinux_make_signal_pipe(&ends) == 0 else { throw SystemError.last("pipe2") }
        let (reader, writer) = (ends[0], ends[1])
        do {
            try SystemThread(name: "signals") { [self] in
                var byte: UInt8 = 0
                while retryingInterrupts({ unsafe read(reader, &byte, 1) }) == 1 { receive(byte) }
            }.detach()
        } catch {
            close(reader)
            close(writer)
            throw error
        }
        return writer
    }
}
