// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import TestSupport
import Testing

@Suite struct TestCertificateTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Returns the outcome of a request by curl(1), which trusts `authority`, to a server with `certificate`.
    private func fetch(
        _ certificate: TestCertificate, trusting authority: TestCertificateAuthority,
        _ change: (inout StubServer.TLS) -> Void = { _ in }, arguments: [String] = []
    ) async throws -> (Command.Outcome, StubServer.Activity) {
        let roots = directory.path + "/roots.pem"
        try authority.write(to: roots)
        var tls = StubServer.TLS(certificate)
        change(&tls)
        return try await StubServer.with(.init(tls: tls)) { server in
            server.route("/", .text("hello"))
            let outcome = try await CurlTool.run(["--cacert", roots, server.url().absoluteString] + arguments)
            try await server.connections(open: 0)
            return (outcome, server.activity)
        }
    }

    @Test func `a client that trusts the root accepts its certificates`() async throws {
        let authority = try TestCertificateAuthority()
        let (outcome, activity) = try await fetch(authority.issue(), trusting: authority)
        #expect(outcome.text == "hello")
        #expect(outcome.status == 0)
        let tls = try #require(activity.requests.first?.tls)
        #expect(tls.version == "TLSv1.3")
        #expect(tls.applicationProtocol == "http/1.1")
        #expect(!tls.isResumed)
    }

    @Test func `intermediate certificates are sent`() async throws {
        let authority = try TestCertificateAuthority()
        let (outcome, _) = try await fetch(
            authority.intermediate().intermediate(name: "Second").issue(), trusting: authority)
        #expect(outcome.text == "hello")
    }

    @Test(arguments: [
        (TestCertificate.Profile.expired, "certificate has expired"),
        (.notYetValid, "certificate is not yet valid"),
        (.wrongHost, "no alternative certificate subject name matches"),
    ])
    func `an invalid certificate is refused`(profile: TestCertificate.Profile, reason: String) async throws {
        let authority = try TestCertificateAuthority()
        let (outcome, activity) = try await fetch(authority.issue(profile), trusting: authority)
        #expect(outcome.status == 60)
        #expect(outcome.text.contains(reason))
        #expect(activity.requests.isEmpty)
    }

    @Test func `a self-signed certificate is refused`() async throws {
        let (outcome, _) = try await fetch(.selfSigned(), trusting: TestCertificateAuthority())
        #expect(outcome.status == 60)
        #expect(outcome.text.contains("self-signed certificate"))
    }

    @Test func `a certificate of an unknown authority is refused`() async throws {
        let stranger = try TestCertificateAuthority(name: "Stranger")
        let (outcome, activity) = try await fetch(stranger.issue(), trusting: TestCertificateAuthority())
        #expect(outcome.status == 60)
        #expect(outcome.text.contains("unable to get local issuer certificate"))
        // Recent versions of curl (8.23) verify the certificate after the handshake.
        #expect(activity.failedHandshakes.count <= 1)
        #expect(activity.requests.isEmpty)
    }

    @Test func `the public key can be pinned`() async throws {
        let authority = try TestCertificateAuthority()
        let certificate = try authority.issue()
        let pin = ["--pinnedpubkey", "sha256//" + certificate.publicKeySHA256]
        let (outcome, _) = try await fetch(certificate, trusting: authority, arguments: pin)
        #expect(outcome.text == "hello")
        let (refusal, _) = try await fetch(authority.issue(), trusting: authority, arguments: pin)
        #expect(refusal.status == 90)
    }

    @Test func `the maximum TLS version is enforced`() async throws {
        let authority = try TestCertificateAuthority()
        let (outcome, activity) = try await fetch(authority.issue(), trusting: authority) { $0.maximumVersion = .v1_2 }
        #expect(outcome.text == "hello")
        #expect(activity.requests.first?.tls?.version == "TLSv1.2")
    }

    @Test func `a client certificate can be required`() async throws {
        let authority = try TestCertificateAuthority()
        let client = directory.path + "/client.pem"
        try authority.issue(.client("Ada")).write(to: client)
        let require = { (tls: inout StubServer.TLS) in tls.clientAuthority = authority.pemData }
        let (outcome, activity) = try await fetch(
            authority.issue(), trusting: authority, require, arguments: ["--cert", client])
        #expect(outcome.text == "hello")
        #expect(activity.requests.first?.tls?.clientName == "Ada")
        let (refusal, refused) = try await fetch(authority.issue(), trusting: authority, require)
        #expect(refusal.status != 0)
        #expect(refused.failedHandshakes.first?.contains("peer did not return a certificate") == true)
    }

    @Test(arguments: [
        // The head has 44 bytes. 56 is CURLE_RECV_ERROR.
        (
            Script.resetAfter(bytes: 49, of: .reply(body: .string(String(repeating: "a", count: 1_000_000)))), [56],
            "aaaaa"
        ),
        // An incomplete body: CURLE_PARTIAL_FILE. Only recent versions of curl(1) distinguish whether close_notify is
        // missing.
        (shortBody(.close), [18], "aaaaa"),
        (shortBody(.closeWithoutNotify), [18, 56], "aaaaa"),
    ])
    func `a connection with TLS ends as configured`(script: Script, exitCodes: [Int32], body: String) async throws {
        let authority = try TestCertificateAuthority()
        try authority.write(to: directory.path + "/roots.pem")
        try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
            server.route("/", script)
            let outcome = try await CurlTool.run([
                "--cacert", directory.path + "/roots.pem", "-N", server.url().absoluteString,
            ])
            #expect(exitCodes.contains(outcome.status))
            #expect(outcome.text.prefix { $0 != "c" } == body)
        }
    }

    private static func shortBody(_ ending: Script.Ending) -> Script {
        Script([.reply(Reply(body: .string("aaaaa"), framing: .contentLength(declared: 9))), .end(ending)])
    }
}
