// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

@Suite struct CredentialTests {
    private static let credential = Credential(user: "alice", password: "s3cret")
    private static let proxy = Proxy(.http, host: "proxy", port: 3128, credential: credential)

    /// Values that may be printed and contain a credential.
    private static let values: [any Sendable] = [
        credential,
        [credential],
        ["key": credential],
        Optional(credential) as any Sendable,
        proxy,
        ProxyPolicy.proxy(proxy),
        TransferOptions().with { $0.proxy = .proxy(proxy) },
        TransportAuthentication.SchemeCredential(credential, by: .digest),
        AWSSignature(
            accessKeyID: "alice", secretAccessKey: "s3cret", sessionToken: "s3cret", region: "eu-north-1", service: "s3"
        ),
    ]

    @Test(arguments: values.indices)
    func `secrets are never printed`(index: Int) throws {
        let value = Self.values[index]
        var text = ""
        print(value, to: &text)
        debugPrint(value, to: &text)
        dump(value, to: &text)
        text += String(describing: value) + String(reflecting: value) + "\(value)"
        text += Self.reflection(of: value)
        #expect(!text.contains("s3cret"))
        #expect(text.contains("alice"))
    }

    @Test func `a request with a proxy's credential does not print it`() throws {
        var request = try Request(url: .example("http://user:s3cret@example.com/"))
        request.options = TransferOptions().with { $0.proxy = .proxy(Self.proxy) }
        #expect("\(request)" == "GET http://example.com/")
        #expect(String(reflecting: request) == "GET http://example.com/")
    }

    @Test func `the description contains the user name`() {
        #expect("\(Self.credential)" == "Credential(user: alice, password: …)")
        #expect(String(reflecting: Self.credential) == "Credential(user: alice, password: …)")
        #expect(Mirror(reflecting: Self.credential).children.map { "\($0.value)" } == ["alice", "…", "nil"])
    }

    @Test func `credentials are equal if user and password are equal`() {
        #expect(Self.credential == Credential(user: "alice", password: "s3cret"))
        #expect(Self.credential != Credential(user: "alice", password: "other"))
    }

    /// Returns everything that mirrors of a value show, at any depth.
    private static func reflection(of value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        return mirror.children.map { "\($0.label ?? "")=\($0.value) \(reflection(of: $0.value))" }.joined()
    }
}
