// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// Resumable uploads in a simulated world: connections are lost at any byte, servers are busy, lose their memory, and are
/// asked while tasks are suspended and cancelled.
@Suite(.timeLimit(.minutes(5))) struct SimulatedUploadsTests {
    /// A failed expectation of a simulated upload.
    private struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    /// The uploads of a server, whose content is a pattern by which bytes at a wrong place are noticed.
    private final class Server: Sendable {
        private let world: SimulatedWorld
        private let uploadProtocol: UploadProtocol
        private let body: Data
        private let state = Lock(State())

        struct State {
            var offsets: [Int] = []
            var isGone: Set<Int> = []
            var completions = 0
            var forgetsLeft = 2
            var violations: [String] = []
        }

        init(_ uploadProtocol: UploadProtocol, _ body: Data, in world: SimulatedWorld) {
            (self.uploadProtocol, self.body, self.world) = (uploadProtocol, body, world)
        }

        var current: State { state.withLock(\.self) }

        /// Decides how much of a body arrives; the bytes of a lost connection are kept.
        func reception(_ request: Request) -> MockTransport.Reception {
            guard request.method == .patch, let number = number(request), let start = offset(of: request) else {
                return .complete
            }
            let length = Int(request.body.length ?? 0)
            guard length > 0, world.chance(0.3) else { return .complete }
            let taken = world.random(in: 0...(length - 1))
            state.withLock { state in
                if start == state.offsets[number], !state.isGone.contains(number) { state.offsets[number] += taken }
            }
            return .failing(after: taken, TransportError(.connectionLost(.whileSending)))
        }

        func response(_ received: MockTransport.ReceivedRequest) throws -> MockResponse {
            let request = received.request
            switch request.method {
            case .options:
                return try response(
                    204,
                    uploadProtocol == .tus
                        ? ["Tus-Resumable": "1.0.0", "Tus-Extension": "creation,termination"]
                        : ["Upload-Limit": "min-size=0"])
            case .post, .put:
                let number = state.withLock { state in
                    state.offsets.append(0)
                    return state.offsets.count - 1
                }
                let url = ["Location": "/u/\(number)"]
                return try uploadProtocol == .tus ? response(201, url) : take(received, 0, number, url)
            default: break
            }
            guard let number = number(request) else { return try response(404) }
            if current.forgetsLeft > 0, current.offsets[number] < body.count, world.chance(0.02) {
                state.withLock { state in
                    state.isGone.insert(number)
                    state.forgetsLeft -= 1
                }
            }
            if current.isGone.contains(number) { return try response(404) }
            switch request.method {
            case .head:
                return try world.chance(0.1) ? response(423) : response(204, fields(number))
            case .patch:
                if world.chance(0.1) { return try response(world.chance(0.5) ? 503 : 409) }
                return try take(received, offset(of: request) ?? 0, number, [:])
            default:
                state.withLock { _ = $0.isGone.insert(number) }
                return try response(204)
            }
        }

        private func take(
            _ received: MockTransport.ReceivedRequest, _ start: Int, _ number: Int, _ fields: [String: String]
        ) throws -> MockResponse {
            let count = received.body.count
            let isNext = state.withLock { state in
                guard start == state.offsets[number] else {
                    state.violations.append("\(start) is sent to \(state.offsets[number])")
                    return false
                }
                if received.body != body[start..<min(body.count, start + count)] {
                    state.violations.append("other bytes at \(start)")
                }
                let wasComplete = state.offsets[number] == body.count && count == 0 && state.completions > 0
                state.offsets[number] += count
                if state.offsets[number] == body.count, !wasComplete { state.completions += 1 }
                return true
            }
            guard isNext else { return try response(409, self.fields(number)) }
            let isWhole = current.offsets[number] == body.count
            return try response(
                uploadProtocol == .tus ? 204 : isWhole ? 200 : 201, self.fields(number).merging(fields) { $1 })
        }

        private func fields(_ number: Int) -> [String: String] {
            let offset = current.offsets[number]
            var fields = ["Upload-Offset": "\(offset)", "Upload-Length": "\(body.count)"]
            if uploadProtocol == .ietf {
                fields["Upload-Complete"] = offset == body.count && current.completions > 0 ? "?1" : "?0"
            }
            return fields
        }

        private func response(_ status: Int, _ fields: [String: String] = [:]) throws -> MockResponse {
            .status(
                HTTPResponse.Status(code: status),
                headers: try HTTPFields(validating: fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }))
        }

        private func number(_ request: Request) -> Int? { Int(request.url.lastPathComponent) }

        private func offset(of request: Request) -> Int? {
            request.headers.first { $0.name.canonicalName == "upload-offset" }.flatMap { Int($0.value) }
        }
    }

    @Test(arguments: [UploadProtocol.tus, .ietf])
    func `an upload in a world that lies completes once, with each byte once, or ends as it was asked to`(
        by uploadProtocol: UploadProtocol
    ) async throws {
        let simulation = Simulation { world in
            let body = StubServer.generatedBytes(world.random(in: 1...400))
            let server = Server(uploadProtocol, body, in: world)
            let transport = SimulatedTransport(world: world, reception: server.reception) { received in
                try await world.pause()
                let response = try server.response(received)
                try await world.pause()
                if world.chance(0.1) { throw TransportError(.connectionLost(.beforeResponse)) }
                return response
            }
            let api = SessionManager(baseURL: URL(string: "https://a.example/")) {
                $0.transport = transport
                $0.clock = world.clock
                $0.retryPolicy = RetryPolicy(limit: 50).with { $0.budget = nil }
            }
            let options = UploadOptions.resumable.with {
                $0.uploadProtocol = world.chance(0.5) ? nil : uploadProtocol
                $0.partSize = Int64(world.random(in: 1...100))
                $0.verifiesParts = world.chance(0.2)
            }
            let task = api.upload("up", body: .bytes(body), method: .put, options: options)
            let isCancelled = world.chance(0.2)
            try await withThrowingTaskGroup { group in
                group.addTask {
                    for await progress in task.progress
                    where progress.totalBytes != Int64(body.count) || progress.completedBytes > Int64(body.count) {
                        throw Violation(description: "\(progress)")
                    }
                }
                group.addTask {
                    try await world.pause(.zero ... .seconds(3))
                    if isCancelled { return task.cancel() }
                    task.suspend()
                    try await world.pause(.zero ... .seconds(3))
                    task.resume()
                }
                group.addTask {
                    do {
                        let response = try await task.value
                        guard (200...299).contains(response.statusCode), server.current.completions >= 1 else {
                            throw Violation(
                                description: "\(response.statusCode), and \(server.current.completions) completions")
                        }
                    } catch is CancellationError where isCancelled {}
                }
                try await group.waitForAll()
            }
            if let violation = server.current.violations.first { throw Violation(description: violation) }
            // A PUT whose upload was forgotten after its last byte may be created again.
            guard server.current.completions <= 1 + server.current.offsets.count - 1 else {
                throw Violation(description: "\(server.current.completions) completions")
            }
        }
        try await simulation.explore(seeds: 1...UInt64(rounds(100, few: 20)))
    }
}
