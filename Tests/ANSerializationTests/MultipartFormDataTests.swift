// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

@Suite struct MultipartFormDataTests {
    @Test func `a form with one field has exactly 111 bytes`() async throws {
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

    @Test func `a form with a field and a file has exactly 244 bytes`() async throws {
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

    @Test func `a part may have custom header fields or none`() async throws {
        var form = try MultipartFormData(boundary: "B")
        try form.append(Data("1".utf8), headers: [("X-B", "b"), ("X-A", "ä")])
        try form.append(Data("2".utf8), headers: [])
        let body = try form.makeBody().body
        #expect(try await text(of: body) == "--B\r\nX-B: b\r\nX-A: ä\r\n\r\n1\r\n--B\r\n\r\n2\r\n--B--\r\n")
        #expect(body.length == 44)
    }

    @Test func `parameters become fields with flat names in sorted order`() async throws {
        var form = try MultipartFormData(boundary: "B")
        try form.append(["b": [1, true], "a": Parameters.null, "c": ["d e": "ü"]])
        #expect(
            try await text(of: form.makeBody().body)
                == "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"
                + "\r\n--B\r\nContent-Disposition: form-data; name=\"b[]\"\r\n\r\n1"
                + "\r\n--B\r\nContent-Disposition: form-data; name=\"b[]\"\r\n\r\n1"
                + "\r\n--B\r\nContent-Disposition: form-data; name=\"c[d e]\"\r\n\r\nü\r\n--B--\r\n")
    }

    @Test func `names are escaped as by browsers`() async throws {
        var form = try MultipartFormData(boundary: "B")
        try form.append(Data(), name: "a\"\r\nX: y\0", fileName: "Ünï \"c\"\\.TXT")
        #expect(
            try await text(of: form.makeBody().body)
                == "--B\r\nContent-Disposition: form-data; name=\"a%22%0D%0AX: y%00\"; filename=\"Ünï %22c%22\\.TXT\"\r\n"
                + "Content-Type: text/plain\r\n\r\n\r\n--B--\r\n")
    }

    /// Browsers write a line break in a name as CR LF, but leave file names unchanged (WHATWG HTML §4.10.21.8).
    @Test(arguments: [
        ("a\nb", "a%0D%0Ab"), ("a\rb", "a%0D%0Ab"), ("a\r\nb", "a%0D%0Ab"), ("\n\r", "%0D%0A%0D%0A"),
        ("\r\r\n\n", "%0D%0A%0D%0A%0D%0A"),
    ])
    func `a line break in a name is CR LF`(name: String, escaped: String) async throws {
        var form = try MultipartFormData(boundary: "B")
        try form.append(Data(), name: name, fileName: "\r_\n", mediaType: "a/b")
        #expect(
            try await text(of: form.makeBody().body)
                == "--B\r\nContent-Disposition: form-data; name=\"\(escaped)\"; filename=\"%0D_%0A\"\r\n"
                + "Content-Type: a/b\r\n\r\n\r\n--B--\r\n")
    }

    @Test(arguments: ["a\rb", "a\nb", "a\r\nSet-Cookie: x", "a\0"])
    func `a header value with control characters is rejected`(value: String) throws {
        var form = MultipartFormData()
        expectFailure {
            try form.append(Data(), headers: [("X-A", value)])
        } where: { error in
            if case .multipart(.headerValue(name: "X-A")) = error { true } else { false }
        }
        expectFailure {
            try form.append(Data(), name: "a", fileName: "b", mediaType: value)
        } where: { error in
            if case .multipart(.headerValue(name: "Content-Type")) = error { true } else { false }
        }
        #expect(form.isEmpty)
    }

    @Test(arguments: ["", "a b", "a:b", "a\r\n", "ä"])
    func `a header name must be a token`(name: String) {
        var form = MultipartFormData()
        expectFailure {
            try form.append(Data(), headers: [(name, "x")])
        } where: { error in
            if case .multipart(.headerName(name)) = error { true } else { false }
        }
    }

    @Test(arguments: ["", "a b", "a\"", "a\r\nb", "ä", String(repeating: "a", count: 71)])
    func `a boundary must follow RFC 2046`(boundary: String) {
        expectFailure {
            try MultipartFormData(boundary: boundary)
        } where: { error in
            if case .multipart(.boundary(boundary)) = error { true } else { false }
        }
    }

    @Test func `a boundary that is not a token is quoted in the content type`() throws {
        #expect(try MultipartFormData(boundary: "a=b?").contentType == "multipart/form-data; boundary=\"a=b?\"")
    }

    @Test func `a random boundary has 25 bytes and is unique`() {
        let boundaries = (0..<100).map { _ in MultipartFormData().boundary }
        #expect(Set(boundaries).count == 100)
        for boundary in boundaries {
            #expect(boundary.hasPrefix("Boundary+"))
            #expect(boundary.utf8.count == 25)
            #expect(boundary.dropFirst(9).allSatisfy { $0.isHexDigit && !$0.isLowercase })
        }
    }

    @Test func `a form without parts fails`() {
        expectFailure {
            try MultipartFormData().makeBody()
        } where: { error in
            if case .multipart(.noParts) = error { true } else { false }
        }
    }

    @Test func `a file is read each time the body is sent`() async throws {
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

    @Test func `a large file is read in small chunks of the declared length`() async throws {
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

    @Test func `a file that became shorter fails, and one that became longer is cut`() async throws {
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
            } catch SerializationError.multipart(let failure) {
                #expect(failure == .fileShrank(path: path, declared: 5, read: 3))
            }
        }
    }

    @Test(arguments: [
        ("/nonexistent/file", "open: No such file or directory (errno 2)"), ("/tmp", "open: Is a directory (errno 21)"),
    ])
    func `a file that cannot be read is rejected when it is appended`(path: String, reason: String) {
        var form = MultipartFormData()
        expectFailure {
            try form.append(file: path, name: "a")
        } where: { error in
            if case .multipart(.file(path: path, reason: reason)) = error { true } else { false }
        }
        #expect(form.isEmpty)
    }

    @Test func `a file that the system generates is a part of unknown length`() async throws {
        let path = "/proc/self/cmdline"
        var form = try MultipartFormData(boundary: "B")
        try form.append(file: path, name: "a")
        let body = try form.makeBody().body
        #expect(body.length == nil && body.isReplayable)
        let content = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        #expect(try await text(of: body).hasSuffix("\r\n\r\n\(content)\r\n--B--\r\n"))
        #expect(try await text(of: RequestBody.file(path).throttled(.packets(delay: .zero))) == content)
    }

    @Test func `a sequence of known length has the length of its part`() async throws {
        var form = try MultipartFormData(boundary: "B")
        try form.append(
            .stream(Chunks(["ab", "", "cde"]), length: 5, isReplayable: true), name: "a", fileName: "log.TXT")
        try form.append(.stream(Chunks(), length: 0, isReplayable: true), name: "b", fileName: nil)
        try form.append(.none, name: "c", fileName: nil, mediaType: "x/y")
        let body = try form.makeBody().body
        let expected =
            "--B\r\nContent-Disposition: form-data; name=\"a\"; filename=\"log.TXT\"\r\nContent-Type: text/plain\r\n\r\n"
            + "abcde\r\n--B\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\n"
            + "\r\n--B\r\nContent-Disposition: form-data; name=\"c\"\r\nContent-Type: x/y\r\n\r\n\r\n--B--\r\n"
        #expect(try await text(of: body) == expected)
        #expect(try await text(of: body) == expected)
        #expect(body.length == Int64(expected.utf8.count))
        #expect(form.length == body.length)
        #expect(body.isReplayable)
    }

    @Test func `a sequence of unknown length makes the length of the body unknown`() async throws {
        var form = try MultipartFormData(boundary: "B")
        form.append("1", name: "a")
        try form.append(.stream(Chunks(["x", "y"]), isReplayable: true), headers: [("X-A", "b")])
        let body = try form.makeBody().body
        #expect(body.length == nil)
        #expect(form.length == nil)
        #expect(body.isReplayable)
        #expect(try await text(of: body).hasSuffix("\r\n--B\r\nX-A: b\r\n\r\nxy\r\n--B--\r\n"))
    }

    @Test(
        arguments: [(["abc"], 2, 3), (["ab", "c", "d"], 2, 3), (["a"], 2, 1), ([], 1, 0)] as [([String], Int64, Int64)])
    func `a sequence with another length than declared fails`(
        chunks: [String], declared: Int64, produced: Int64
    ) async throws {
        var form = MultipartFormData()
        try form.append(.stream(Chunks(chunks), length: declared, isReplayable: true), name: "log", fileName: nil)
        let body = try form.makeBody().body
        await expectFailure(.partLength(part: "log", declared: declared, produced: produced)) {
            try await text(of: body)
        }
    }

    @Test func `a negative length is rejected at once`() async {
        await expectFailure(.partLength(part: "a", declared: -1, produced: 0)) {
            var form = MultipartFormData()
            try form.append(.stream(Chunks(), length: -1), name: "a", fileName: nil)
        }
    }

    @Test func `a total length that exceeds 64 bits is rejected`() async throws {
        var form = MultipartFormData()
        for name in ["a", "b"] { try form.append(.stream(Chunks(), length: .max), name: name, fileName: nil) }
        await expectFailure(.tooLong) { [form] in _ = try form.makeBody() }
    }

    @Test func `a form with a part that can be read once can be sent once`() async throws {
        var form = MultipartFormData()
        form.append("1", name: "a")
        try form.append(.stream(Chunks(["x"]), length: 1), name: "once", fileName: nil)
        let body = try form.makeBody().body
        #expect(!body.isReplayable)
        #expect(try await text(of: body).contains("\r\n\r\nx\r\n"))
        for again in [body, try form.makeBody().body] {
            await expectFailure(.partReadTwice(part: "once")) { try await text(of: again) }
        }
    }

    @Test func `an error thrown by a sequence ends the body`() async throws {
        var form = MultipartFormData()
        try form.append(.stream(Chunks(["x"], failing: true)), name: "a", fileName: nil)
        let body = try form.makeBody().body
        await #expect(throws: Chunks.Failing.self) { try await text(of: body) }
    }

    @Test func `a part can be written by a closure or be another body in compressed form`() async throws {
        var form = try MultipartFormData(boundary: "B")
        form.append("1", name: "a")
        try form.append(
            .writer(length: 4) { writer in
                try await writer.write("tw")
                try await writer.write("o!")
            }, name: "b", fileName: nil)
        try form.append(RequestBody.stream(Chunks(["3"]), isReplayable: true).compressed(), name: "c", fileName: nil)
        form.append("4", name: "d")
        let body = try form.makeBody().body
        #expect(body.length == nil)
        #expect(!body.isReplayable)
        let all = try await chunks(of: body).reduce(into: Data()) { $0 += $1 }
        let text = String(decoding: all, as: UTF8.self)
        #expect(text.hasPrefix("--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\n"))
        #expect(text.contains("name=\"b\"\r\n\r\ntwo!\r\n--B\r\n"))
        #expect(text.hasSuffix("name=\"d\"\r\n\r\n4\r\n--B--\r\n"))
        #expect(all.firstRange(of: Data([0x1F, 0x8B])) != nil)
        await expectFailure(.partReadTwice(part: "b")) { _ = try await chunks(of: body) }
        try await withFile(named: "f", Data()) { path in
            var form = try MultipartFormData(boundary: "B")
            try form.append(.writer { try await $0.write("x") }, name: "a", fileName: nil)
            _ = try await form.write(to: path)
            let written = try Data(contentsOf: URL(filePath: path))
            #expect(written == Data("--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--B--\r\n".utf8))
        }
    }

    @Test(arguments: [3, 5])
    func `a closure that does not write the declared length of its part is an error`(length: Int64) async throws {
        var form = MultipartFormData()
        try form.append(.writer(length: length) { try await $0.write("four") }, name: "a", fileName: nil)
        let body = try form.makeBody().body
        await expectFailure(.partLength(part: "a", declared: length, produced: 4)) { try await text(of: body) }
    }

    @Test func `a sequence is read no faster than the body`() async throws {
        let chunks = Chunks(["1", "2", "3"])
        var form = MultipartFormData()
        try form.append(.stream(chunks), name: "a", fileName: nil)
        let body = try form.makeBody().body
        #expect(chunks.taken == 0)
        let taken = Lock<[Int]>([])
        try await body.write(to: RequestBodyWriter { _ in taken.withLock { $0.append(chunks.taken) } })
        #expect(taken.withLock { $0 } == [0, 1, 2, 3, 3])
    }

    @Test(
        arguments: [
            (.formData, "multipart/form-data; boundary=B"), (.mixed, "multipart/mixed; boundary=B"),
            (.related(type: "text/html"), "multipart/related; boundary=B; type=\"text/html\""),
            (
                .related(type: "a\"\\b", start: "<1@x>"),
                "multipart/related; boundary=B; type=\"a\\\"\\\\b\"; start=\"<1@x>\""
            ),
        ] as [(MultipartFormData.Subtype, String)])
    func `the content type contains the subtype`(subtype: MultipartFormData.Subtype, contentType: String) throws {
        #expect(try MultipartFormData(subtype: subtype, boundary: "B").contentType == contentType)
    }

    @Test(arguments: ["a\r\nX: y", "\0", "\u{1F}", "\u{7F}", "ä"])
    func `subtype parameters with control characters are rejected`(value: String) async {
        await expectFailure(.headerValue(name: "type")) {
            _ = try MultipartFormData(subtype: .related(type: value))
        }
        await expectFailure(.headerValue(name: "start")) {
            _ = try MultipartFormData(subtype: .related(type: "a/b", start: value))
        }
    }

    @Test func `bytes in parameters are sent unchanged, and text in the configured encoding`() async throws {
        var form = try MultipartFormData(boundary: "B")
        try form.append(["a": Parameters.data(Data([0xFF, 0])), "b": ["ü"]], stringEncoding: .isoLatin1)
        let bytes = try await chunks(of: form.makeBody().body).reduce(into: Data()) { $0 += $1 }
        #expect(
            bytes == Data("--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n".utf8) + Data([0xFF, 0])
                + Data("\r\n--B\r\nContent-Disposition: form-data; name=\"b[]\"\r\n\r\n".utf8) + Data([0xFC])
                + Data("\r\n--B--\r\n".utf8))
    }

    @Test func `parameters that fail are not appended at all`() async throws {
        var form = try MultipartFormData(boundary: "B")
        expectFailure {
            try form.append(["a": "ü", "b": 1, "c": "€"], stringEncoding: .isoLatin1)
        } where: { error in
            if case .parameters(.textEncoding(path: "c")) = error { true } else { false }
        }
        #expect(form.isEmpty)
        form.append("x", name: "d")
        #expect(
            try await text(of: form.makeBody().body)
                == "--B\r\nContent-Disposition: form-data; name=\"d\"\r\n\r\nx\r\n--B--\r\n")
    }

    @Test func `a form is written to a file, replacing an existing one`() async throws {
        try await withFile(named: "body", Data("old".utf8)) { path in
            var form = MultipartFormData()
            form.throttle = .packets(of: 1, delay: .seconds(3_600))
            form.append(Data(repeating: 1, count: 600_000), name: "a")
            try form.append(.stream(Chunks(["x", "yz"])), name: "b", fileName: nil)
            let (contentType, body) = try await form.write(to: path)
            #expect(contentType == form.contentType)
            guard case .file(path) = body.content else {
                Issue.record("another body")
                return
            }
            let written = try Data(contentsOf: URL(filePath: path))
            #expect(written.count > 600_000)
            #expect(written.starts(with: Data("--\(form.boundary)\r\n".utf8)))
            #expect(written.suffix(form.boundary.utf8.count + 10) == Data("yz\r\n--\(form.boundary)--\r\n".utf8))
        }
    }

    @Test func `a form that fails while being written keeps an existing file`() async throws {
        try await withFile(named: "body", Data("old".utf8)) { path in
            var form = MultipartFormData()
            try form.append(.stream(Chunks(["x"]), length: 2), name: "a", fileName: nil)
            await expectFailure(.partLength(part: "a", declared: 2, produced: 1)) { [form] in
                _ = try await form.write(to: path)
            }
            #expect(try String(contentsOf: URL(filePath: path), encoding: .utf8) == "old")
            let directory = URL(filePath: path).deletingLastPathComponent().path
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["body"])
        }
    }

    @Test func `the path of a file that cannot be written is reported`() async throws {
        var form = MultipartFormData()
        form.append("1", name: "a")
        await expectFailure(
            .notWritten(path: "/nonexistent/body", reason: "open: No such file or directory (errno 2)")
        ) { [form] in
            _ = try await form.write(to: "/nonexistent/body")
        }
    }

    @Test func `parts of all kinds and sizes are complete`() async throws {
        var random = SplitMix64(seed: 7)
        let pattern = Data((0..<300_100).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try await withFile(named: "f", Data()) { path in
            for _ in 0..<30 {
                var form = try MultipartFormData(boundary: "B")
                var expected = Data("--B\r\n".utf8)
                for index in 0..<Int.random(in: 1...12, using: &random) {
                    let size =
                        [0, 1, 100, 32_767, 32_768, 262_143, 262_144, 300_000].randomElement(using: &random) ?? 0
                    let content = pattern.dropFirst(index).prefix(size)
                    if index > 0 { expected += Data("\r\n--B\r\n".utf8) }
                    expected += Data("A: \(index)\r\n\r\n".utf8) + content
                    let file = path + "\(index)"
                    let body: RequestBody
                    switch Int.random(in: 0...2, using: &random) {
                    case 0: body = .bytes(content)
                    case 1:
                        try content.write(to: URL(filePath: file))
                        body = .file(file)
                    default: body = .stream(Chunks([content, Data()]), isReplayable: true)
                    }
                    try form.append(body, headers: [("A", "\(index)")])
                }
                expected += Data("\r\n--B--\r\n".utf8)
                let body = try form.makeBody().body
                #expect(try await chunks(of: body).reduce(into: Data()) { $0 += $1 } == expected)
                #expect(body.length == nil || body.length == Int64(expected.count))
            }
        }
    }
}
