// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import Testing

@Suite struct MultipartFormDataTests {
    @Test func `one field is laid out byte for byte, 111 bytes`() async throws {
        var form = try MultipartFormData(boundary: "Boundary+0123456789ABCDEF")
        form.append("bar", name: "foo")
        let (contentType, body) = try form.makeBody()
        #expect(contentType == "multipart/form-data; boundary=Boundary+0123456789ABCDEF")
        #expect(
            try await text(of: body)
                == "--Boundary+0123456789ABCDEF\r\nContent-Disposition: form-data; name=\"foo\"\r\n\r\nbar"
                + "\r\n--Boundary+0123456789ABCDEF--\r\n")
        #expect(body.length == 111)
        #expect(body.isReplayable)
    }

    @Test func `a field and a file are 244 bytes`() async throws {
        var form = try MultipartFormData(boundary: "Boundary+0123456789ABCDEF")
        form.append("value", name: "key")
        try form.append(Data("Data".utf8), name: "DataName", fileName: "DataFileName", mediaType: "data")
        let body = try form.makeBody().body
        #expect(
            try await text(of: body)
                == "--Boundary+0123456789ABCDEF\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nvalue"
                + "\r\n--Boundary+0123456789ABCDEF\r\nContent-Disposition: form-data; name=\"DataName\"; "
                + "filename=\"DataFileName\"\r\nContent-Type: data\r\n\r\nData\r\n--Boundary+0123456789ABCDEF--\r\n")
        #expect(body.length == 244)
    }

    @Test func `a part may have headers of its own, or none`() async throws {
        var form = try MultipartFormData(boundary: "B")
        try form.append(Data("1".utf8), headers: [("X-B", "b"), ("X-A", "ä")])
        try form.append(Data("2".utf8), headers: [])
        let body = try form.makeBody().body
        #expect(try await text(of: body) == "--B\r\nX-B: b\r\nX-A: ä\r\n\r\n1\r\n--B\r\n\r\n2\r\n--B--\r\n")
        #expect(body.length == 44)
    }

    @Test func `parameters become fields with flat names, sorted`() async throws {
        var form = try MultipartFormData(boundary: "B")
        try form.append(["b": [1, true], "a": nil, "c": ["d e": "ü"]])
        #expect(
            try await text(of: form.makeBody().body)
                == "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"
                + "\r\n--B\r\nContent-Disposition: form-data; name=\"b[]\"\r\n\r\n1"
                + "\r\n--B\r\nContent-Disposition: form-data; name=\"b[]\"\r\n\r\n1"
                + "\r\n--B\r\nContent-Disposition: form-data; name=\"c[d e]\"\r\n\r\nü\r\n--B--\r\n")
    }

    @Test func `names are escaped as browsers do it`() async throws {
        var form = try MultipartFormData(boundary: "B")
        try form.append(Data(), name: "a\"\r\nX: y\0", fileName: "Ünï \"c\"\\.TXT")
        #expect(
            try await text(of: form.makeBody().body)
                == "--B\r\nContent-Disposition: form-data; name=\"a%22%0D%0AX: y%00\"; filename=\"Ünï %22c%22\\.TXT\"\r\n"
                + "Content-Type: text/plain\r\n\r\n\r\n--B--\r\n")
    }

    @Test(arguments: ["a\rb", "a\nb", "a\r\nSet-Cookie: x", "a\0"])
    func `a value that would break out of its header is refused`(value: String) throws {
        var form = MultipartFormData()
        expectFailure {
            try form.append(Data(), headers: [("X-A", value)])
        } where: { error in
            if case .multipart(.headerValue("X-A")) = error { true } else { false }
        }
        expectFailure {
            try form.append(Data(), name: "a", fileName: "b", mediaType: value)
        } where: { error in
            if case .multipart(.headerValue("Content-Type")) = error { true } else { false }
        }
        #expect(form.isEmpty)
    }

    @Test(arguments: ["", "a b", "a:b", "a\r\n", "ä"])
    func `a header's name must be a token`(name: String) {
        var form = MultipartFormData()
        expectFailure {
            try form.append(Data(), headers: [(name, "x")])
        } where: { error in
            if case .multipart(.headerName(name)) = error { true } else { false }
        }
    }

    @Test(arguments: ["", "a b", "a\"", "a\r\nb", "ä", String(repeating: "a", count: 71)])
    func `a boundary must be one of RFC 2046`(boundary: String) {
        expectFailure {
            try MultipartFormData(boundary: boundary)
        } where: { error in
            if case .multipart(.boundary(boundary)) = error { true } else { false }
        }
    }

    @Test func `a boundary that is no token is quoted in the type`() throws {
        #expect(try MultipartFormData(boundary: "a=b?").contentType == "multipart/form-data; boundary=\"a=b?\"")
    }

    @Test func `a random boundary has 25 bytes and is fresh`() {
        let boundaries = (0..<100).map { _ in MultipartFormData().boundary }
        #expect(Set(boundaries).count == 100)
        for boundary in boundaries {
            #expect(boundary.hasPrefix("Boundary+"))
            #expect(boundary.utf8.count == 25)
            #expect(boundary.dropFirst(9).allSatisfy { $0.isHexDigit && !$0.isLowercase })
        }
    }

    @Test func `a form without parts has no body`() {
        expectFailure {
            try MultipartFormData().makeBody()
        } where: { error in
            if case .multipart(.noParts) = error { true } else { false }
        }
    }

    @Test func `a file is read each time, with its name and type`() async throws {
        try await withFile(named: "logo.PNG", Data("image".utf8)) { path in
            var form = try MultipartFormData(boundary: "B")
            try form.append(file: path, name: "a")
            try form.append(file: path, name: "b", fileName: "c", mediaType: "x/y")
            let body = try form.makeBody().body
            let expected =
                "--B\r\nContent-Disposition: form-data; name=\"a\"; filename=\"logo.PNG\"\r\nContent-Type: image/png\r\n\r\n"
                + "image\r\n--B\r\nContent-Disposition: form-data; name=\"b\"; filename=\"c\"\r\nContent-Type: x/y\r\n\r\n"
                + "image\r\n--B--\r\n"
            #expect(try await text(of: body) == expected)
            #expect(try await text(of: body) == expected)
            #expect(body.length == Int64(expected.utf8.count))
        }
    }

    @Test func `a large file comes in small chunks of the declared length`() async throws {
        let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try await withFile(named: "large", content) { path in
            var form = try MultipartFormData(boundary: "B")
            try form.append(file: path, name: "a")
            form.append(content, name: "b")
            let body = try form.makeBody().body
            let chunks = try await chunks(of: body)
            #expect(chunks.allSatisfy { !$0.isEmpty && $0.count <= 262_144 })
            #expect(Int64(chunks.reduce(0) { $0 + $1.count }) == body.length)
            let head =
                "--B\r\nContent-Disposition: form-data; name=\"a\"; filename=\"large\"\r\n"
                + "Content-Type: application/octet-stream\r\n\r\n"
            let all = chunks.reduce(into: Data()) { $0 += $1 }
            #expect(
                all == Data(head.utf8) + content
                    + Data("\r\n--B\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\n".utf8)
                    + content + Data("\r\n--B--\r\n".utf8))
        }
    }

    @Test func `a file that has shrunk fails, one that has grown is cut`() async throws {
        try await withFile(named: "f", Data("12345".utf8)) { path in
            var form = try MultipartFormData(boundary: "B")
            try form.append(file: path, name: "a")
            let body = try form.makeBody().body
            try Data("1234567".utf8).write(to: URL(filePath: path))
            #expect(try await text(of: body).hasSuffix("\r\n\r\n12345\r\n--B--\r\n"))
            try Data("123".utf8).write(to: URL(filePath: path))
            do {
                _ = try await text(of: body)
                Issue.record("nothing was thrown")
            } catch SerializationError.multipart(let problem) {
                #expect(problem == .fileShrank(path: path, declared: 5, read: 3))
            }
        }
    }

    @Test(arguments: [
        ("/nonexistent/file", "open: No such file or directory (errno 2)"), ("/tmp", "open: Is a directory (errno 21)"),
    ])
    func `what cannot be read is refused when it is appended`(path: String, reason: String) {
        var form = MultipartFormData()
        expectFailure {
            try form.append(file: path, name: "a")
        } where: { error in
            if case .multipart(.file(path, reason)) = error { true } else { false }
        }
        #expect(form.isEmpty)
    }
}

/// The chunks of a streamed body, read once.
private func chunks(of body: RequestBody) async throws -> [Data] {
    guard case .stream(_, _, let makeReader) = body.content else { return [] }
    let reader = try makeReader()
    var chunks: [Data] = []
    while let chunk = try await reader.next() { chunks.append(chunk) }
    return chunks
}

private func text(of body: RequestBody) async throws -> String {
    String(decoding: try await chunks(of: body).joined(), as: UTF8.self)
}

/// Lends the path of a file that exists during the call.
private func withFile(named name: String, _ content: Data, _ use: (String) async throws -> Void) async throws {
    let directory = "/tmp/ANSerializationTests-\(UInt64.random(in: .min ... .max))"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let path = directory + "/" + name
    try content.write(to: URL(filePath: path))
    try await use(path)
}
