// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

/// mitmproxy between the client and nginx. Its certificate authority is in the client's trust store.
@Suite(.servers(.nginxTLS, .mitm), .timeLimit(.minutes(5))) struct ManInTheMiddleTests {
    /// Creates a manager that trusts the servers' authority and mitmproxy's.
    private func manager(_ policy: SecurityPolicy, throughTheMiddle: Bool = true) throws -> SessionManager {
        let directory = try RealServer.directory()
        let store = try [directory + "/pki/ca.pem", directory + "/mitm/mitmproxy-ca-cert.pem"]
            .reduce(into: Data()) { $0 += try Data(contentsOf: URL(filePath: $1)) }
        let proxy = try RealServer.mitm.proxy(.http)
        return try SessionManager(for: .nginxTLS) {
            $0.tls.trustRoots = .systemAnd(store)
            $0.tls.policy = policy
            if throughTheMiddle { $0.proxy = .proxy(proxy) }
        }
    }

    /// Returns the pin of the public key of the real server.
    private func pin() async throws -> PublicKeyPin {
        let manager = try manager(.pinning([], backups: []), throughTheMiddle: false)
        let error = try await sessionError { _ = try await manager.get("small.json") }
        guard case .tls(.noPins) = error.reason else { throw error }
        let context = try #require(error.context)
        return try #require(context.serverTrust?.presented.first?.publicKey)
    }

    @Test func `a manager without pins trusts the man in the middle`() async throws {
        let response = try await manager(SecurityPolicy()).get("small.json")
        #expect(response.text.contains("Ada Lovelace"))
    }

    @Test func `a manager with pins rejects the man in the middle and accepts the server`() async throws {
        let policy = SecurityPolicy.pinning([try await pin()], backups: [])
        let direct = try await manager(policy, throughTheMiddle: false).get("small.json")
        #expect(direct.text.contains("Ada Lovelace"))
        let error = try await sessionError { _ = try await manager(policy).get("small.json") }
        guard case .tls(.pinMismatch(expected: policy.pins)) = error.reason else { throw error }
        let context = try #require(error.context)
        #expect(context.serverTrust?.presented.first?.issuer.contains("mitmproxy") == true)
        #expect("\(error)".contains(policy.pins[0].description))
    }

    @Test func `a manager with a pinned certificate rejects the man in the middle`() async throws {
        let authority = try SecurityPolicy.certificates(in: .file(try RealServer.authority()))
        let policy = SecurityPolicy.pinning(certificates: authority)
        let direct = try await manager(policy, throughTheMiddle: false).get("small.json")
        #expect(direct.statusCode == 200)
        let error = try await sessionError { _ = try await manager(policy).get("small.json") }
        guard case .tls(.certificateNotPinned) = error.reason else { throw error }
    }
}
