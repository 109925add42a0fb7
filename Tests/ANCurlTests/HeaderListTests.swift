// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import CCurl
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct HeaderListTests {
    @Test func `fields are listed in their order, an empty one in libcurl's form`() throws {
        let lines = try Self.lines([("B", "2"), ("a", "1"), ("B", ""), ("Text", "ä;: €")])
        #expect(lines == ["B: 2", "a: 1", "B;", "Text: ä;: €", "Expect:"])
    }

    @Test func `without fields only Expect is switched off`() throws {
        #expect(try Self.lines([]) == ["Expect:"])
    }

    @Test(
        arguments: [
            (.seconds(1), .bytes(Data("x".utf8)), true, ["Expect: 100-continue"]),
            (.seconds(1), .channel(UploadChannel(length: nil, isReplayable: false)), true, ["Expect: 100-continue"]),
            (.seconds(1), .channel(UploadChannel(length: 0, isReplayable: false)), true, ["Expect:"]),
            // A POST request without a body, or with an empty one.
            (.seconds(1), .none, true, ["Expect:"]),
            (.seconds(1), .bytes(Data()), true, ["Expect:"]),
            (nil, .bytes(Data("x".utf8)), true, ["Expect:"]),
            (.seconds(1), .none, false, []), (nil, .none, false, []),
        ] as [(Duration?, Upload, Bool, [String])])
    func `Expect is asked for with content only`(
        timeout: Duration?, upload: Upload, sendsBody: Bool, lines: [String]
    ) throws {
        let options = Self.plain.with { $0.expectContinueTimeout = timeout }
        #expect(try Self.lines([], options, upload: upload, sendsBody: sendsBody) == lines)
    }

    @Test func `the user's own Expect stands alone`() throws {
        let options = Self.plain.with { $0.expectContinueTimeout = .seconds(1) }
        #expect(try Self.lines([("expect", "x")], options, sendsBody: true) == ["expect: x"])
        #expect(try Self.lines([("Expect", "")], options, sendsBody: true) == ["Expect;"])
    }

    @Test func `a value of blanks is sent as an empty one`() throws {
        var headers: HTTPFields = [:]
        headers.append(HTTPField(name: .accept, value: " \t "))
        headers.append(HTTPField(name: .acceptLanguage, lenientValue: Array(" ".utf8)))
        #expect(try Self.lines(headers) == ["Accept;", "Accept-Language;", "Expect:"])
    }

    @Test func `bytes that are not UTF-8 are sent as they are`() throws {
        var headers: HTTPFields = [:]
        headers.append(HTTPField(name: .accept, lenientValue: [0xE4, 0xFF]))
        let list = try HeaderList(Self.request(headers), SharedTransferOptions(Self.plain), .none, sendsBody: false)
        let bytes = unsafe list.first.map { unsafe Array(String.bytes(of: $0.pointee.data)) }
        #expect(bytes == Array("Accept: ".utf8) + [0xE4, 0xFF])
    }

    // MARK: Framing

    @Test(arguments: [
        ("Content-Length", "5", Upload.bytes(Data("hello".utf8))),
        ("content-length", "0", .none),
        ("Transfer-Encoding", "chunked", .channel(UploadChannel(length: nil, isReplayable: false))),
        ("Transfer-Encoding", "Chunked", .channel(UploadChannel(length: nil, isReplayable: false))),
        ("Content-Length", "7", .channel(UploadChannel(length: 7, isReplayable: false))),
    ])
    func `fields that frame the body are left to libcurl where they are true`(
        name: String, value: String, upload: Upload
    ) throws {
        #expect(try Self.lines([(name, value)], upload: upload) == ["Expect:"])
    }

    @Test(arguments: [
        ("Content-Length", "6", Upload.bytes(Data("hello".utf8))),
        ("Content-Length", "05", .bytes(Data("hello".utf8))),
        ("Content-Length", "", .bytes(Data("hello".utf8))),
        ("Content-Length", "5", .none),
        ("Content-Length", "5", .channel(UploadChannel(length: nil, isReplayable: false))),
        ("Transfer-Encoding", "chunked", .bytes(Data("hello".utf8))),
        ("Transfer-Encoding", "chunked", .none),
        ("Transfer-Encoding", "gzip, chunked", .channel(UploadChannel(length: nil, isReplayable: false))),
    ])
    func `fields that frame the body wrongly are refused`(name: String, value: String, upload: Upload) throws {
        let error = #expect(throws: TransportError.self) { try Self.lines([(name, value)], upload: upload) }
        guard case .invalidRequest(let reason) = error?.reason, reason.hasPrefix(name) else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    // MARK: Overrides

    @Test func `overrides are a list of their own`() throws {
        let options = Self.plain.with {
            $0.connection.hostOverrides = [
                .init(host: "example.com", port: 443, address: "127.0.0.1", addressPort: 8443),
                .init(host: "::1", port: 80, address: "fe80::1"),
            ]
        }
        let list = try HeaderList(Self.request([.accept: "x"]), SharedTransferOptions(options), .none, sendsBody: true)
        #expect(unsafe String.lines(of: list.first) == ["Accept: x", "Expect:"])
        #expect(
            unsafe String.lines(of: list.firstOverride) == [
                "example.com:443:127.0.0.1:8443", "[::1]:80:[fe80::1]:80",
            ])
    }

    @Test(arguments: [[], ["Bearer a"], ["Bearer a", ""]])
    func `fields for a proxy are a list of their own`(values: [String]) throws {
        var headers: HTTPFields = [.accept: "x"]
        headers[values: .proxyAuthorization] = values
        headers.append(HTTPField(name: .acceptLanguage, value: "y"))
        let options = Self.plain.with {
            $0.connection.hostOverrides = [.init(host: "a.example", port: 1, address: "b.example", addressPort: 2)]
        }
        let list = try HeaderList(Self.request(headers), SharedTransferOptions(options), .none, sendsBody: true)
        #expect(unsafe String.lines(of: list.first) == ["Accept: x", "Accept-Language: y", "Expect:"])
        #expect(
            unsafe String.lines(of: list.firstForProxy)
                == values.map { $0.isEmpty ? "Proxy-Authorization;" : "Proxy-Authorization: \($0)" })
        #expect(unsafe String.lines(of: list.firstOverride) == ["a.example:1:b.example:2"])
    }

    // MARK: Sizes

    @Test(arguments: [0, 1, 64, 1020, 1024, 5000, 100_000])
    func `values of any length fit`(length: Int) throws {
        let value = String(repeating: "x", count: length)
        let line = length == 0 ? "A;" : "A: \(value)"
        #expect(try Self.lines([("A", value), ("B", "y")]) == [line, "B: y", "Expect:"])
    }

    @Test func `a thousand fields fit`() throws {
        let headers = HTTPFields((0..<1000).map { HTTPField(name: .accept, value: "\($0)") })
        #expect(try Self.lines(headers) == (0..<1000).map { "Accept: \($0)" } + ["Expect:"])
    }

    // MARK: Fields of the library

    @Test func `content codings are accepted unless the request names others`() throws {
        let accepted = "Accept-Encoding: \(ContentDecoder.supportedCodings)"
        let options = TransferOptions()
        #expect(try Self.lines([("A", "b")], options, sendsBody: false) == ["A: b", accepted])
        #expect(try Self.lines([("Accept-Encoding", "br")], options, sendsBody: false) == ["Accept-Encoding: br"])
        #expect(try Self.lines([("A", "b")], sendsBody: false) == ["A: b"])
    }

    // MARK: Helpers

    /// Options without content codings.
    private static let plain = TransferOptions().with { $0.decodesContent = false }

    private static func lines(
        _ pairs: [(String, String)], _ options: TransferOptions = plain, upload: Upload = .none, sendsBody: Bool = true
    ) throws -> [String] {
        try lines(HTTPFields(validating: pairs), options, upload: upload, sendsBody: sendsBody)
    }

    private static func lines(
        _ headers: HTTPFields, _ options: TransferOptions = plain, upload: Upload = .none, sendsBody: Bool = true
    ) throws -> [String] {
        let list = try HeaderList(request(headers), SharedTransferOptions(options), upload, sendsBody: sendsBody)
        return unsafe String.lines(of: list.first)
    }

    private static func request(_ headers: HTTPFields) throws -> Request {
        Request(url: try #require(URL(string: "http://localhost/")), headers: headers)
    }
}

extension String {
    /// The lines of a list of libcurl's.
    fileprivate static func lines(of list: UnsafeMutablePointer<curl_slist>?) -> [String] {
        var lines: [String] = []
        var node = unsafe list
        while let current = unsafe node {
            unsafe lines.append(String(decoding: bytes(of: current.pointee.data), as: UTF8.self))
            unsafe node = current.pointee.next
        }
        return lines
    }

    /// The bytes of a C string, without its end.
    fileprivate static func bytes(of text: UnsafeMutablePointer<CChar>?) -> [UInt8] {
        guard var position = unsafe text else { return [] }
        var bytes: [UInt8] = []
        while unsafe position.pointee != 0 {
            bytes.append(UInt8(bitPattern: unsafe position.pointee))
            unsafe position += 1
        }
        return bytes
    }
}
