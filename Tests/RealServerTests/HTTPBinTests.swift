// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

/// The request as httpbin received it.
private struct Echo: Decodable, Sendable {
    var method: String?
    var url: String
    var args: [String: String]
    var headers: [String: String]
    var data: String?
    var form: [String: String]?
    var json: JSONText?

    /// A JSON body without nesting.
    struct JSONText: Decodable, Equatable, Sendable {
        var a: Int
        var b: String
    }
}

@Suite(.servers(.httpbin), .timeLimit(.minutes(5))) struct HTTPBinTests {
    private let manager: SessionManager

    init() throws {
        manager = try SessionManager(for: .httpbin)
    }

    private let parameters: Parameters = ["a": 1, "b": "x y&ü"]

    @Test func `GET and DELETE send parameters in the query`() async throws {
        let got = try await manager.get("get", parameters: parameters, as: .decodable(Echo.self)).value
        #expect(got.args == ["a": "1", "b": "x y&ü"])
        let deleted = try await manager.delete("delete", parameters: parameters, as: .decodable(Echo.self)).value
        #expect(deleted.args == ["a": "1", "b": "x y&ü"])
    }

    @Test func `POST, PUT and PATCH send parameters as a form`() async throws {
        let answers = [
            try await manager.post("post", parameters: parameters, as: .decodable(Echo.self)),
            try await manager.put("put", parameters: parameters, as: .decodable(Echo.self)),
            try await manager.patch("patch", parameters: parameters, as: .decodable(Echo.self)),
        ]
        for answer in answers {
            #expect(answer.value.form == ["a": "1", "b": "x y&ü"])
            #expect(answer.value.headers["Content-Type"] == "application/x-www-form-urlencoded")
        }
    }

    @Test func `a JSON serializer sends parameters as JSON`() async throws {
        let manager = try SessionManager(for: .httpbin) { $0.requestSerializer = .json }
        let echo = try await manager.post("post", parameters: parameters, as: .decodable(Echo.self)).value
        #expect(echo.json == Echo.JSONText(a: 1, b: "x y&ü"))
        #expect(echo.headers["Content-Type"] == "application/json")
    }

    @Test(arguments: ["GET", "POST", "PUT", "PATCH", "DELETE"])
    func `any method may have a body`(method: String) async throws {
        let request = try manager.request(
            #require(HTTPRequest.Method(method)), "anything/x?q=1", body: .string("hello"),
            headers: [.contentType: "text/plain"])
        let echo = try await manager.value(for: request, as: .decodable(Echo.self))
        #expect(echo.method == method)
        #expect(echo.data == "hello")
        #expect(echo.args == ["q": "1"])
    }

    @Test func `default header fields and those of the call are sent`() async throws {
        struct Headers: Decodable, Sendable {
            var headers: [String: String]
        }
        let name = try #require(HTTPField.Name("X-Own"))
        let headers = try await manager.get("headers", headers: [name: "1"], as: .decodable(Headers.self)).value.headers
        #expect(headers["X-Own"] == "1")
        #expect(headers["User-Agent"]?.contains("AsyncNetworking/") == true)
        #expect(headers["Accept-Encoding"]?.contains("gzip") == true)
    }

    @Test func `a chunked response is read line by line`() async throws {
        let ids = try await manager.withResponse(for: manager.request(.get, "stream/20")) { head, body in
            #expect(head.headers[.transferEncoding] == "chunked")
            struct Line: Decodable {
                var id: Int
            }
            var ids: [Int] = []
            for try await line in body.lines {
                ids.append(try JSONDecoder().decode(Line.self, from: Data(line.utf8)).id)
            }
            return ids
        }
        #expect(ids == Array(0..<20))
    }

    @Test(arguments: [("gzip", "gzip", "gzipped"), ("brotli", "br", "brotli"), ("deflate", "deflate", "deflated")])
    func `content codings are decoded`(path: String, coding: String, key: String) async throws {
        let response = try await manager.get(path, as: .json)
        #expect(response.headers[.contentEncoding] == coding)
        #expect(response.value[key] == .bool(true))
    }

    @Test(arguments: [200, 201, 400, 401, 404, 418, 500, 503])
    func `any status code is returned`(status: Int) async throws {
        let response = try await manager.data(for: manager.request(.get, "status/\(status)"))
        #expect(response.statusCode == status)
    }

    @Test func `redirects are followed, relative and absolute`() async throws {
        #expect(try await manager.get("redirect/5").redirectHistory.count == 5)
        #expect(try await manager.get("relative-redirect/3").redirectHistory.count == 3)
        #expect(try await manager.get("absolute-redirect/3").redirectHistory.count == 3)
        let limited = try SessionManager(for: .httpbin) { $0.redirectPolicy.maximum = 4 }
        let error = try await sessionError { _ = try await limited.get("redirect/5") }
        guard case .redirect(.tooMany(limit: 4, _)) = error else { throw error }
    }

    @Test func `a 307 redirect sends the body again`() async throws {
        let target = try RealServer.httpbin.url("/anything").absoluteString
        let request = try manager.request(.post, "redirect-to?status_code=307&url=\(target)", body: .string("again"))
        let response = try await manager.response(for: request, as: .decodable(Echo.self))
        #expect(response.value.method == "POST")
        #expect(response.value.data == "again")
        #expect(response.redirectHistory.map(\.status.code) == [307])
    }

    @Test func `an authorization field set by the caller is accepted if it is right`() async throws {
        let basic = { (text: String) in "Basic " + Data(text.utf8).base64EncodedString() }
        let path = "basic-auth/user/secret"
        #expect(try await manager.get(path, headers: [.authorization: basic("user:secret")]).statusCode == 200)
        let error = try await sessionError {
            _ = try await manager.get(path, headers: [.authorization: basic("user:wrong")])
        }
        #expect(error.statusCode == 401)
    }

    @Test func `an authorization field is not sent to another origin`() async throws {
        // The same server by another name is another origin.
        let port = try #require(try RealServer.httpbin.url().port)
        let path = "redirect-to?url=http://localhost:\(port)/headers"
        let response = try await manager.get(path, headers: [.authorization: "secret"], as: .string)
        #expect(response.head.url.host() == "localhost")
        #expect(!response.value.contains("Authorization"))
        let same = try await manager.get("redirect-to?url=/headers", headers: [.authorization: "secret"], as: .string)
        #expect(same.value.contains("Authorization"))
    }

    @Test func `cookies are set by redirects, sent, and deleted`() async throws {
        let set = try await manager.get("cookies/set?a=1&b=2", as: .json)
        #expect(set.redirectHistory.map { $0.headers.count { $0.name == .setCookie } } == [2])
        #expect(set.value["cookies"] == .object(["a": .string("1"), "b": .string("2")]))
        let deleted = try await manager.get("cookies/delete?a", as: .json)
        #expect(deleted.value["cookies"] == .object(["b": .string("2")]))
        #expect(await manager.cookies.all().map(\.name) == ["b"])
    }

    @Test func `cookies are neither stored nor sent if they are disabled`() async throws {
        let manager = try SessionManager(for: .httpbin) { $0.handlesCookies = false }
        let set = try await manager.get("cookies/set?a=1", as: .json)
        #expect(set.redirectHistory.map { $0.headers[.setCookie] } == ["a=1; Path=/"])
        #expect(set.value["cookies"] == .object([:]))
    }

    @Test func `bytes are received unchanged, in one or many pieces`() async throws {
        let first = try await manager.get("bytes/100000?seed=7").value
        let second = try await manager.get("stream-bytes/100000?seed=7&chunk_size=999").value
        #expect(first.count == 100_000)
        #expect(second.count == 100_000)
        let dripped = try await manager.get("drip?numbytes=10&duration=0&delay=0").value
        #expect(dripped == Data(repeating: UInt8(ascii: "*"), count: 10))
    }

    @Test func `a download in many pieces reports its progress`() async throws {
        let directory = try TemporaryDirectory()
        let task = manager.download("drip?numbytes=5&duration=0.2&delay=0", to: "\(directory.path)/file")
        let progress = await task.progress.reduce(into: []) { $0.append($1) }
        #expect(progress.last?.completedBytes == 5)
        #expect(progress.last?.totalBytes == 5)
        #expect(try await task.value.size == 5)
    }
}
