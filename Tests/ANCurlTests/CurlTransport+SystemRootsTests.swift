// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct SystemRootsTests {
    /// Runs in a process of its own, because `SSL_CERT_FILE` is read once per process.
    @Test(.exitTest) func `the system's trust file is read again after it changed`() async throws {
        await #expect(processExitsWith: .success) {
            let path = "/tmp/an-system-roots-\(UUID())"
            defer { try? FileManager.default.removeItem(atPath: path) }
            unsafe setenv("SSL_CERT_FILE", path, 1)
            let root = try TestCertificateAuthority()
            try TestCertificateAuthority(name: "Other").write(to: path)
            try await StubServer.with(.init(tls: .init(root.issue()))) { server in
                server.fallback { _ in .text("ok") }
                let transport = try CurlTransport()
                let request = server.request(options: .with { $0.tls.trustRoots = .system })
                guard try await transport.failure(request).reason == .tls(.unknownAuthority) else { exit(2) }
                try root.write(to: path)
                guard try await transport.text(request) == "ok" else { exit(3) }
            }
        }
    }

    /// libcurl verifies proxies, whose contexts the same option marks.
    @Test(.exitTest) func `servers are verified by their policy if the system's configuration sets the option Bugs`()
        async throws
    {
        await #expect(processExitsWith: .success) {
            let path = "/tmp/an-openssl-\(UUID()).cnf"
            defer { try? FileManager.default.removeItem(atPath: path) }
            let configuration = """
                openssl_conf = all
                [all]
                ssl_conf = tls
                [tls]
                system_default = bugs
                [bugs]
                Options = Bugs
                """
            try Data(configuration.utf8).write(to: URL(filePath: path))
            unsafe setenv("OPENSSL_CONF", path, 1)
            let authority = try TestCertificateAuthority()
            try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
                server.fallback { _ in .text("ok") }
                let transport = try CurlTransport()
                var request = server.request(options: .with { $0.tls.trustRoots = .pem(authority.pemData) })
                guard try await transport.text(request) == "ok" else { exit(2) }
                request.changeOptions {
                    $0.proxy = .proxy(Proxy(.https, host: "127.0.0.1", port: server.endpoint.port))
                }
                guard case .invalidRequest = try await transport.failure(request).reason else { exit(3) }
                request.changeOptions {
                    $0.proxy = .proxy(
                        Proxy(.https, host: "127.0.0.1", port: server.endpoint.port, bypass: ["127.0.0.1"]))
                }
                guard try await transport.text(request) == "ok" else { exit(4) }
            }
        }
    }

    /// Runs in a process of its own, because `SSL_CERT_DIR` is read once per process.
    @Test(.exitTest) func `the system's directory of authorities is used`() async throws {
        await #expect(processExitsWith: .success) {
            let directory = "/tmp/an-system-roots-\(UUID())"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
            defer { try? FileManager.default.removeItem(atPath: directory) }
            unsafe unsetenv("SSL_CERT_FILE")
            unsafe setenv("SSL_CERT_DIR", directory, 1)
            let root = try TestCertificateAuthority()
            try root.write(to: "\(directory)/root.pem")
            // Adds the links by which OpenSSL finds certificates.
            guard try await Command("openssl", "rehash", directory).run().status == 0 else { exit(2) }
            try await StubServer.with(.init(tls: .init(root.issue()))) { server in
                server.fallback { _ in .text("ok") }
                let request = server.request(options: .with { $0.tls.trustRoots = .system })
                guard try await CurlTransport().text(request) == "ok" else { exit(3) }
            }
        }
    }
}
