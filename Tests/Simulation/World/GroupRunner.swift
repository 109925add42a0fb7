// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// Performs a call that consists of a group of tasks.
struct GroupRunner: Sendable {
    let runner: CallRunner
    let session: SessionManager
    private var call: Program.Call { runner.call }
    private var ledger: Ledger { runner.ledger }

    init(runner: CallRunner, session: SessionManager) {
        self.runner = runner
        self.session = session
    }

    /// A task of the group, and its call.
    private struct Member: Sendable {
        let call: Program.Call
        let task: AnySessionTask
        /// Waits for the task, and judges its value; returns the size of its body.
        let end: @Sendable () async throws -> Int
    }

    func perform(_ request: Request) async throws {
        let members = (0..<call.count).map { member($0, request) }
        let group = SessionTaskGroup(members.map(\.task))
        if call.hasIdempotencyKey {
            ledger.cover("group.sizes")
            await session.requestSizes(of: group)
            for member in members { ledger.forget(call: member.call.number) }
        }
        do {
            try Task.checkCancellation()
            try await withThrowingTaskGroup(of: TransferProgress?.self) { children in
                children.addTask { await watch(group) }
                children.addTask {
                    try await control(group)
                    return nil
                }
                var last: TransferProgress?
                for try await progress in children { last = progress ?? last }
                try await judge(members, last)
            }
        } catch {
            group.cancel()
            for member in members { _ = try? await member.end() }
            judgeRest(members)
            throw error
        }
        judgeRest(members)
    }

    private func member(_ index: Int, _ request: Request) -> Member {
        var inner = call
        inner.number = call.number * 100 + index
        inner.resource = (call.resource + index) % 6
        inner.method = .get
        var request = request
        (request.method, request.body) = (.get, .none)
        request.url = Resource.root(of: call.host).appending(path: "r/\(inner.resource)")
        request.call = inner.number
        let runner = CallRunner(
            call: inner, program: runner.program, world: runner.world, ledger: ledger, directory: runner.directory)
        guard index % 2 == 0 else {
            let path = "\(runner.directory)/d\(inner.number)"
            let task = session.makeDownloadTask(for: request, to: .file(path))
            return Member(call: inner, task: task.erased) {
                let file = try await task.value
                try runner.check(file, path)
                return Int(file.size)
            }
        }
        let task = session.makeDataTask(for: request)
        return Member(call: inner, task: task.erased) { [request] in
            let response = try await task.value
            try runner.judge(response.value, response.head, request)
            return response.value.count
        }
    }

    /// Starts the group, perhaps suspends it or cancels it, and waits for its end.
    private func control(_ group: SessionTaskGroup) async throws {
        group.resume()
        if let time = call.suspendAfter {
            try await runner.world.clock.sleep(for: .milliseconds(time))
            ledger.cover("group.suspend")
            let placed = group.tasks.filter { $0.status.state == .running }
            group.suspend()
            try await runner.world.clock.sleep(for: .milliseconds(100))
            group.resume()
            runner.noteResumed(placed)
        }
        if call.count == 4 {
            try await runner.world.clock.sleep(for: .milliseconds(60))
            ledger.cover("group.cancel")
            group.cancel()
            let begin = ledger.now
            try await group.waitForAll()
            let grace = runner.program.settings.isLate ? Int64(LateTransport.delay) * 1_000_000 : 0
            if ledger.now > begin + grace { ledger.violate(6, "group \(call.number) goes on after it was cancelled") }
        }
        try await group.waitForAll()
        for task in group.tasks where task.status.state != .finished {
            ledger.violate(7, "a task of group \(call.number) is \(task.status.state) after the end of all")
        }
    }

    /// Returns the last progress.
    private func watch(_ group: SessionTaskGroup) async -> TransferProgress? {
        var last: TransferProgress?
        for await progress in group.progress {
            if let total = progress.totalBytes, progress.completedBytes > total, !runner.program.settings.usesCache {
                ledger.violate(8, "the progress of group \(call.number) is \(progress.completedBytes) of \(total)")
            }
            last = progress
        }
        return last
    }

    private func judge(_ members: [Member], _ progress: TransferProgress?) async throws {
        var size = 0
        var failures: [any Error] = []
        for member in members {
            do {
                size += try await member.end()
            } catch {
                failures.append(error)
            }
        }
        try Task.checkCancellation()
        if let failure = failures.first(where: { !($0 is CancellationError) }) { throw failure }
        // Those that the program has cancelled are no failure of the group.
        guard failures.isEmpty else { return }
        // That of concurrent requests is the one of either.
        guard !runner.program.settings.sendsConcurrently else { return }
        ledger.cover("oracle.8.group")
        if progress?.completedBytes != Int64(size) || progress?.totalBytes != Int64(size) {
            ledger.violate(
                8, "group \(call.number) has \(size) bytes, and the progress \(String(describing: progress))")
        }
    }

    private func judgeRest(_ members: [Member]) {
        // A cache validates responses in the background.
        guard !runner.program.settings.usesCache else { return }
        for member in members where ledger.arrivals(of: member.call.number).contains(where: \.isOpen) {
            ledger.violate(9, "group \(call.number) leaves an exchange of call \(member.call.number)")
        }
    }
}
