// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct NetrcFileTests {
    @Test(arguments: [
        ("machine a.example login ada password lovelace", ["a.example ada lovelace"]),
        ("machine A.Example\n\tlogin ada\n\tpassword lovelace\n", ["a.example ada lovelace"]),
        (
            "# all\nmachine a.example login ada password x # mine\nmachine b.example password y account z login b",
            ["a.example ada x", "b.example b y"]
        ),
        (##"machine a.example login "a b" password "q\"\\#""##, [##"a.example a b q"\#"##]),
        (##"machine a.example login a password "1\t2\n3\r4\x""##, ["a.example a 1\t2\n3\r4x"]),
        ("machine a.example login ada password x#y", ["a.example ada x#y"]),
        ("machine a.example login #ada password #x # y\nmachine b.example", ["a.example #ada #x"]),
        ("\u{FEFF}machine a.example user ada password x", ["a.example ada x"]),
        // Only ASCII whitespace separates words, and an accent does not hide a quotation mark.
        ("machine a.example login ada\u{A0}l password \u{3000}\u{301}", ["a.example ada\u{A0}l \u{3000}\u{301}"]),
        ("machine a.example login \"\u{301}a\" password \"x\"\u{301}", ["a.example \u{301}a x"]),
        ("machine a.example login ada # \u{2028}login b\npassword x", ["a.example ada x"]),
        (
            "# machine a.example login b password c\nmachine a.example login ada password x # login b",
            ["a.example ada x"]
        ),
        ("default login any password secret\nmachine a.example login ada password x", ["a.example ada x"]),
        ("machine a.example login ada password x default login any password y", ["a.example ada x"]),
        ("macdef init\ncd /x\nmachine no login no\n\nmachine a.example login ada password x", ["a.example ada x"]),
        ("machine a.example login one password 1 machine a.example login two password 2", ["a.example one 1"]),
        ("machine a.example login ada password 1 MACHINE b Login b PassWord 2", ["a.example ada 1", "b b 2"]),
        ("machine a.example login ada", []), ("machine", []), ("machine a.example password", []),
        ("login x password y", []),
        ("", []),
    ])
    func `entries are parsed`(text: String, expected: [String]) {
        let entries = NetrcFile.parse(text).map { "\($0.key) \($0.value.user) \($0.value.password)" }
        #expect(entries.sorted() == expected)
    }

    private func manager(on transport: MockTransport, _ directory: TemporaryDirectory) throws -> SessionManager {
        let path = try directory.write(
            Data("machine a.example login ada password lovelace machine 127.0.0.1 login ada password lovelace".utf8),
            to: "netrc")
        return SessionManager(on: transport) { $0.authentication.netrcFile = path }
    }

    @Test(arguments: [
        ("https://a.example/x", true), ("https://A.EXAMPLE:8443/", true), ("http://127.0.0.1:8080/", true),
        ("https://a.example./", true), ("http://127.1/", true), ("http://a.example/", false),
        ("https://b.a.example/", false), ("https://b.example/", false),
    ])
    func `credentials are sent over https, and to the local machine`(target: String, isSent: Bool) async throws {
        let transport = MockTransport.protected()
        let directory = try TemporaryDirectory()
        let manager = try manager(on: transport, directory)
        _ = try await manager.data(for: Request(url: url(target)))
        #expect(transport.authorizations == (isSent ? [nil, adasField] : [nil]))
    }

    /// A password that is no text would be sent as another one, which may lock the account.
    @Test(arguments: [("a", [nil]), ("b", [nil, adasField])] as [(String, [String?])])
    func `an entry that is no UTF-8 is not used, but others are`(host: String, sent: [String?]) async throws {
        let (transport, directory) = (MockTransport.protected(), try TemporaryDirectory())
        var text = Data("machine a.example login ada password lovelace".utf8)
        text += [0xFC] + Data(" machine b.example login ada password lovelace".utf8)
        let path = try directory.write(text, to: "netrc")
        let manager = SessionManager(on: transport) { $0.authentication.netrcFile = path }
        _ = try await manager.data(for: Request(url: url("https://\(host).example/")))
        #expect(transport.authorizations == sent)
    }

    @Test(
        arguments: [
            { $0.proxy = .proxy(Proxy(.http, host: "p.example", port: 1)) },
            { $0.connection.unixSocketPath = "/run/a.sock" },
            { $0.connection.hostOverrides = [.init(host: "127.0.0.1", port: 80, address: "10.0.0.1")] },
        ] as [@Sendable (inout TransferOptions) -> Void])
    func `over http, credentials are sent to the local machine only`(
        change: @escaping @Sendable (inout TransferOptions) -> Void
    ) async throws {
        let transport = MockTransport.protected()
        let directory = try TemporaryDirectory()
        let manager = try manager(on: transport, directory)
        var request = try Request(url: url("http://127.0.0.1/x"))
        request.changeOptions(change)
        _ = try await manager.data(for: request)
        #expect(transport.authorizations == [nil])
    }

    @Test func `a missing file has no entries`() async throws {
        let transport = MockTransport.protected()
        let manager = SessionManager(on: transport, baseURL: "https://a.example/") {
            $0.authentication.netrcFile = "/nowhere/netrc"
        }
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
    }

    @Test func `an explicit credential takes precedence`() async throws {
        let transport = MockTransport.protected()
        let directory = try TemporaryDirectory()
        let manager = try manager(on: transport, directory)
        var request = try Request(url: url("https://a.example/"))
        request.credential = Credential(user: "own", password: "x")
        #expect(try await manager.data(for: request).statusCode == 401)
        #expect(transport.authorizations.count == 2)
        #expect(!transport.authorizations.contains(adasField))
    }
}
