// SPDX-License-Identifier: MIT

// Calls with closures from the main actor, in a module without upcoming features. `Tests/Callers/MainActor` has a link to
// this file and compiles it with the main actor as the default isolation. The file is compiled, not run.

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

@MainActor final class ViewModel {
    var token = "0"
    var lines: [String] = []
    let base = URL(filePath: "/")

    func sessions() async throws {
        let token = token
        let manager = SessionManager(baseURL: base) { $0.headers[.authorization] = token }
        let configuration = SessionConfiguration(baseURL: base) { $0.headers[.authorization] = self.token }
        try await withSession(configure: { $0.headers[.authorization] = self.token }) { session in
            self.lines.append(try await session.get("x", as: .string).value)
        }
        _ = SessionManager(configuration)
        await manager.shutdown(draining: .zero)
    }

    /// A wrapper that forwards its closure.
    func session(configure: (inout SessionConfiguration) -> Void) -> SessionManager {
        SessionManager(SessionConfiguration(baseURL: base, configure: configure))
    }

    func calls(on api: SessionManager) async throws {
        let limit = Duration.seconds(1)
        _ = try await api.get("x", options: { $0.timeouts.idle = limit })
        _ = try await api.post("x", body: .json([1]), options: { $0.timeouts.idle = limit })
        let request = try api.request(.get, "x", options: { $0.timeouts.idle = limit })
        try await api.withResponse(for: request, validating: .statusOnly) { _, body in
            for try await line in body.lines { self.lines.append(line) }
        }
        let counter = StringResponseSerializer().map { $0.count }
        lines.append("\(try await api.get("x", as: counter).value)")
    }

    func bodies(on api: SessionManager) async throws {
        let text = lines.joined()
        _ = try await api.post("x", body: .writer { writer in try await writer.write(text) })
        try await api.withUpload(api.request(.post, "x", body: .string(text))) { task in
            for await progress in task.progress { self.lines.append("\(progress)") }
        }
        try await RequestBody.string(text).write(to: RequestBodyWriter { await self.append($0) })
    }

    func append(_ chunk: Data) {
        lines.append("\(chunk.count)")
    }

    func downloads(on api: SessionManager) async throws {
        try await api.withDownload(api.request(.get, "x"), to: "/tmp/x") { task in
            for await progress in task.progress { self.lines.append("\(progress)") }
        }
    }

    func policies() -> SessionConfiguration {
        var configuration = SessionConfiguration()
        let token = token
        configuration.retryPolicy = RetryPolicy().with { $0.limit = self.lines.count }
        configuration.retryPolicy.decision = { _ in .followPolicy }
        configuration.redirectPolicy = RedirectPolicy().with { $0.maximum = self.lines.count }
        configuration.redirectPolicy.decision = { $0.proposed }
        let authenticator = Authenticator(for: [base]) { _ in Authenticator.Token(token) }
        configuration.authentication.authenticators = [authenticator]
        configuration.tls.policy.evaluator = { _ in .followPolicy }
        configuration.tls.policy.observer = { _ in }
        configuration.willCache = { proposal in proposal }
        return configuration
    }

    func requests() -> Request {
        var request = Request(url: base)
        request.changeOptions { $0.timeouts.idle = .seconds(1) }
        request.options = TransferOptions().with { $0.proxy = .none }
        request.trailers = { [:] }
        return request
    }

    func serializers() {
        _ = URLEncodedFormEncoder().with { $0.arrays = .indexed }
    }

    func responses(of api: SessionManager) async throws {
        let response = try await api.get("x", as: .string).map { self.lines + [$0] }
        lines = response.value
        await api.cookies.removeAll { $0.name == self.token }
        api.taskGroup { $0.label == self.token }.cancel()
        try await api.withResponse(for: requests()) { _, body in
            for try await chunk in body.transforming({ $0 }) { self.lines.append("\(chunk.count)") }
        }
    }

    func destinations(of api: SessionManager) throws {
        let token = token
        _ = api.makeDownloadTask(for: requests(), to: .chosen { _ in "/tmp/\(token)" })
        _ = DownloadOptions().with { $0.isDurable = self.lines.isEmpty }
        _ = try api.restoredDownloads(in: "/tmp") { $0.headers[.authorization] = self.token }
    }

    func streams(of api: SessionManager) async throws {
        try await api.withResponse(for: requests()) { _, body in
            for try await number in body.jsonLines(of: Int.self, onFailure: { _ in }) { self.lines.append("\(number)") }
        }
        try await api.withResponse(for: requests()) { _, body in
            let numbers = body.jsonSequence(of: Int.self, onFailure: { failure in print(failure) })
            for try await number in numbers { self.lines.append("\(number)") }
        }
        try await api.withWebSocket(requests()) { socket in
            try await socket.send(.text(self.token))
            for try await message in socket { self.lines.append("\(message)") }
        }
    }

    func challenges() -> AuthenticationPolicy {
        let token = token
        var policy = AuthenticationPolicy()
        policy.challengeHandler = { _ in .use(Credential(user: "ada", password: token)) }
        return policy
    }

    func transport() async throws {
        let token = token
        let transport = MockTransport { _ in .text(token) }
        let text = try await transport.withResponse(for: requests(), delivery: .streamed) { _, body in
            self.lines.append(self.token)
            return String(decoding: try await body.collect(upTo: 100), as: UTF8.self)
        }
        lines.append(text)
    }

    func server() async throws {
        let token = token
        try await StubServer.with { server in
            server.route("/a") { _ in .text(token) }
            server.fallback { _ in .text(token) }
            let activity = try await server.activity { $0.requests.isEmpty }
            self.lines.append("\(activity.requests.count)")
        }
        _ = try await EventRecorder().first { if case .head = $0 { true } else { false } }
    }
}

/// An interceptor and a monitor.
struct Logger: Interceptor, EventMonitor {
    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        try await next(request)
    }

    func receive(_ event: TaskEvent, of task: AnySessionTask) {
        print(event)
    }
}
