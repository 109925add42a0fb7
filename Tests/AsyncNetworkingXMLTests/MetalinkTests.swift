// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import AsyncNetworkingXML
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1))) struct MetalinkTests {
    private static func metalink(_ files: String, attributes: String = "") -> String {
        "<metalink xmlns='urn:ietf:params:xml:ns:metalink'\(attributes)>\(files)</metalink>"
    }

    private static func file(_ content: String, name: String = "a") -> String {
        metalink("<file name='\(name)'>\(content)<url>http://h/a</url></file>")
    }

    private static func digest(_ byte: String = "ab") -> String { String(repeating: byte, count: 32) }

    private func read(_ text: String) throws -> [Metalink.File] {
        try Metalink(XMLContent(Data(text.utf8))).files
    }

    @Test func `a document has files with URLs by priority, sizes and digests`() throws {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <m:metalink xmlns:m="urn:ietf:params:xml:ns:metalink" xmlns:x="urn:x">
              <m:published>2026-11-26T12:00:00Z</m:published>
              <m:file name="images/disk.iso">
                <m:size> 10 </m:size>
                <x:size>99</x:size>
                <m:hash type="md5">00</m:hash>
                <m:hash type="sha-256">\(Self.digest())</m:hash>
                <m:pieces length="2" type="sha-1"><m:hash>00</m:hash></m:pieces>
                <m:pieces length="4" type="SHA-256">
                  <m:hash>\(Self.digest("01"))</m:hash><m:hash>\(Self.digest("02"))</m:hash>
                  <m:hash><![CDATA[\(Self.digest("03"))]]></m:hash>
                </m:pieces>
                <m:metaurl mediatype="torrent">http://h/torrent</m:metaurl>
                <m:url>https://c.example/disk.iso?a=1&amp;b=2</m:url>
                <m:url priority="2" location="de">http://b.example/disk.iso</m:url>
                <m:url priority="1">http://a.example/disk.iso</m:url>
                <m:url priority="1">ftp://a.example/disk.iso</m:url>
              </m:file>
              <m:file name="b"><m:url>http://h/b</m:url><m:size>0</m:size>
                <m:pieces length="4" type="sha-512"/></m:file>
            </m:metalink>
            """
        let files = try read(text)
        let file = try #require(files.first)
        #expect(file.name == "images/disk.iso")
        #expect(file.size == 10)
        #expect(file.digests == [ContentDigest("sha-256:\(Self.digest())")])
        #expect(file.pieceDigests?.algorithm == .sha256)
        #expect(file.pieceDigests?.pieceLength == 4)
        #expect(file.pieceDigests?.totalBytes == 10)
        #expect(file.pieceDigests?.values == [1, 2, 3].map { Data(repeating: $0, count: 32) })
        #expect(
            file.urls.map(\.absoluteString) == [
                "http://a.example/disk.iso", "http://b.example/disk.iso", "https://c.example/disk.iso?a=1&b=2",
            ])
        let options = file.downloadOptions
        #expect(options.segments == .automatic)
        #expect(options.mirrors == Array(file.urls.dropFirst()))
        #expect(options.expectedDigest == file.digests.first)
        #expect(options.pieceDigests == file.pieceDigests)
        #expect(files.map(\.name) == ["images/disk.iso", "b"])
        #expect(files.last?.pieceDigests?.values == [])
    }

    @Test func `without a digest there are no mirrors`() throws {
        let file = try read(Self.file("<hash type='md5'>0</hash><url>http://m/a</url>"))[0]
        #expect(file.urls.count == 2)
        #expect(file.digests == [])
        #expect(file.downloadOptions.mirrors == [])
    }

    struct Rejected: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var text: String
        /// A part of the error's description.
        var problem: String

        init(_ description: String, _ text: String, _ problem: String) {
            (testDescription, self.text, self.problem) = (description, text, problem)
        }
    }

    @Test(arguments: [
        Rejected("no element", "", "no complete outermost element"),
        Rejected("not well-formed", "<metalink", "no complete outermost element"),
        Rejected("another document", "<rss/>", "no element metalink of RFC 5854"),
        Rejected("version 3", "<metalink xmlns='http://www.metalinker.org/'/>", "no element metalink of RFC 5854"),
        Rejected("no file", metalink(""), "no file"),
        Rejected(
            "entities that expand", "<!DOCTYPE m [<!ENTITY a 'lol'><!ENTITY b '&a;&a;&a;&a;'>]>" + metalink("&b;"),
            "declaration <!ENTITY>"),
        Rejected(
            "an entity with a file", "<!DOCTYPE m [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>" + metalink("&a;"),
            "declaration <!ENTITY>"),
        Rejected(
            "a million mirrors", file(String(repeating: "<url>http://m/</url>", count: 400_000)), "more than 100 URLs"),
        Rejected(
            "many files",
            metalink(String(repeating: "<file name='a'><url>http://h/a</url></file>", count: 1_001)),
            "more than 1000 files"),
        Rejected(
            "many digests", file(String(repeating: "<hash type='sha-256'>\(digest())</hash>", count: 101)),
            "too many digests"),
        Rejected(
            "many lists", file(String(repeating: "<pieces length='1' type='md5'/>", count: 101)),
            "too many lists of pieces"),
        Rejected("deep", metalink(String(repeating: "<a>", count: 300)), "nested more than 256 levels"),
        Rejected("too large", metalink(String(repeating: " ", count: 10_000_000)), "more than 10000000 bytes"),
        Rejected("a negative size", file("<size>-1</size>"), "a wrong size"),
        Rejected("a huge size", file("<size>9223372036854775808</size>"), "a wrong size"),
        Rejected("two sizes", file("<size>1</size><size>1</size>"), "a wrong size"),
        Rejected("an empty size", file("<size/>"), "a wrong size"),
        Rejected("pieces of no length", file("<pieces length='0' type='sha-256'/>"), "a wrong length"),
        Rejected("pieces of a negative length", file("<pieces length='-4' type='sha-256'/>"), "a wrong length"),
        Rejected("pieces without a length", file("<pieces type='sha-256'/>"), "a wrong length"),
        Rejected(
            "fewer pieces",
            file("<size>9</size><pieces length='4' type='sha-256'><hash>\(digest())</hash></pieces>"),
            "does not fit its size"),
        Rejected(
            "more pieces",
            file(
                "<size>4</size><pieces length='4' type='sha-256'><hash>\(digest())</hash><hash>\(digest())</hash></pieces>"
            ),
            "does not fit its size"),
        Rejected(
            "a short digest of a piece",
            file("<size>4</size><pieces length='4' type='sha-256'><hash>abcd</hash></pieces>"), "a malformed digest"),
        Rejected(
            "a digest that is no number", file("<hash type='sha-256'>\(digest("xy"))</hash>"), "a malformed digest"),
        Rejected("no name", metalink("<file><url>http://h/a</url></file>"), "not a relative path"),
        Rejected("a name above", file("", name: "../a"), "not a relative path"),
        Rejected("a name above, later", file("", name: "a/../../b"), "not a relative path"),
        Rejected("an absolute name", file("", name: "/etc/passwd"), "not a relative path"),
        Rejected("a name of Windows", file("", name: "..\\a"), "not a relative path"),
        Rejected("a name with a line break", file("", name: "a&#10;b"), "not a relative path"),
        Rejected("a name with a control character", file("", name: "a&#x9B;b"), "not a relative path"),
        Rejected("a name that is shown as another", file("", name: "report&#x202E;fdp.exe"), "not a relative path"),
        Rejected("a name with a line separator", file("", name: "a&#x2028;b"), "not a relative path"),
        Rejected("a name of a record", file("", name: "b/a.part.json"), "the name of an unfinished download"),
        Rejected(
            "a name of a record, joined", file("", name: "b/a\u{600}.part.json"), "the name of an unfinished download"),
        Rejected("a name of a partial file", file("", name: "b/a.part"), "the name of an unfinished download"),
        Rejected("a directory", file("", name: "a/"), "not a relative path"),
        Rejected("a long name", file("", name: String(repeating: "a", count: 256)), "not a relative path"),
        Rejected(
            "a name that takes long to compare",
            file("", name: "e" + String(repeating: "\u{301}\u{316}", count: 100_000)), "not a relative path"),
        Rejected(
            "a long namespace", metalink("<x xmlns='\(String(repeating: "u", count: 1 << 20))'><a/></x>"), "attributes"),
        Rejected(
            "other schemes",
            metalink("<file name='a'><url>file:///etc/passwd</url><url>javascript:alert(1)</url></file>"),
            "without an http or https URL"),
        Rejected("no host", metalink("<file name='a'><url>http:///a</url></file>"), "a malformed URL"),
        Rejected("no scheme", metalink("<file name='a'><url>//h/a</url></file>"), "a malformed URL"),
        Rejected("a priority of 0", metalink("<file name='a'><url priority='0'>http://h/</url></file>"), "priority"),
        Rejected(
            "a huge priority", metalink("<file name='a'><url priority='1000000'>http://h/</url></file>"), "priority"),
    ])
    func `a document that is malformed or hostile is rejected`(_ row: Rejected) throws {
        let error = #expect(throws: SerializationError.self) { try read(row.text) }
        guard case .xml? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(error?.description.contains(row.problem) == true, "\(String(describing: error))")
    }

    @Test func `a file is downloaded from its mirrors`() async throws {
        let bytes = StubServer.generatedBytes(100_000)
        let hashes = try stride(from: 0, to: bytes.count, by: 30_000).map { start in
            "<hash>\(try ContentDigest(of: Data(bytes[start..<min(start + 30_000, bytes.count)])).hexadecimal)</hash>"
        }
        try await StubServer.with { server in
            let served = ServedFile(bytes)
            let liar = ServedFile(Data(count: bytes.count))
            server.route("/right") { served.script(for: $0) }
            server.route("/wrong") { liar.script(for: $0) }
            let text = Self.metalink(
                """
                <file name="file"><size>100000</size>
                <pieces length="30000" type="sha-256">\(hashes.joined())</pieces>
                <url priority="1">\(server.url("/gone"))</url>
                <url priority="2">\(server.url("/wrong"))</url><url priority="3">\(server.url("/right"))</url></file>
                """)
            server.route("/meta4") { _ in .data(Data(text.utf8), headers: ["Content-Type": "application/metalink4+xml"])
            }
            let api = SessionManager(baseURL: server.url("/")) { $0.proxy = .none }
            let file = try Metalink(try await api.get("meta4", as: .xmlParser).value).files[0]
            let directory = FileManager.default.temporaryDirectory.appending(path: "an-metalink-\(UUID())")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
            defer { try? FileManager.default.removeItem(at: directory) }
            let path = directory.appending(path: file.name).path()
            _ = try await api.download(Request(url: file.urls[0]), to: .file(path), options: file.downloadOptions).value
            #expect(try Data(contentsOf: URL(filePath: path)) == bytes)
        }
    }
}
