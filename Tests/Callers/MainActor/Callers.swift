// SPDX-License-Identifier: MIT

// Every public parameter that is a closure, as it is called in a module whose default isolation is the main actor
// and which has no upcoming features. The closures capture state of the main actor where that is useful. The file is compiled, not run.

import AsyncNetworking
import FoundationEssentials
import HTTPTypes

final class ViewModel {
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
        _ = try await api.post("x", json: [1], options: { $0.timeouts.idle = limit })
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
    }

    func downloads(on api: SessionManager) async throws {
        try await api.withDownload(api.request(.get, "x"), to: "/tmp/x") { task in
            for await progress in task.progress { self.lines.append("\(progress)") }
        }
    }

    func policies() throws -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.retryPolicy = RetryPolicy().with { $0.limit = 3 }
        let token = token
        let authenticator = Authenticator(for: [base]) { _ in BearerToken(token) }
        configuration.authentication.authenticators = [authenticator]
        configuration.tls.policy.evaluator = { _ in .followPolicy }
        configuration.tls.policy.observer = { _ in }
        return configuration
    }
}
