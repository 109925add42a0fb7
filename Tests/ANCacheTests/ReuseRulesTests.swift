// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

/// RFC 9111 §4, §4.1, §5.2.1: which stored response answers a request.
@Suite struct ReuseRulesTests {
    private let fresh = StoredResponse.of("Cache-Control: max-age=60", "ETag: \"a\"")

    // MARK: Target and method

    @Test(arguments: [
        ("http://a.example", "http://a.example/"), ("HTTP://A.Example/x", "http://a.example/x"),
        ("http://a.example:80/x", "http://a.example/x"), ("https://a.example:443/x", "https://a.example/x"),
        ("http://a.example/x#part", "http://a.example/x"), ("http://u:p@a.example/x", "http://a.example/x"),
        ("http://a.example?q", "http://a.example/?q"), ("http://a.example/X?Q=A:b@c", "http://a.example/X?Q=A:b@c"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"), ("http://a.example:443/x", "http://a.example:443/x"),
        ("http://a.example/y/../x", "http://a.example/x"), ("HTTP://a.example/y/%2E./x", "http://a.example/x"),
    ])
    func `§4 equivalent URLs have the same target`(text: String, target: String) throws {
        #expect(CacheKey.target(try #require(URL(string: text))) == target)
    }

    @Test(arguments: ["http://a.example/y", "http://a.example/x?", "https://a.example/x", "http://b.example/x"])
    func `§4 a stored response is not used for another target`(other: String) {
        #expect(decide(.get(target: other), fresh, at: 1) == .forward)
    }

    @Test(arguments: [("GET", "fresh"), ("HEAD", "fresh"), ("POST", "forward"), ("OPTIONS", "forward")])
    func `§4 a stored response to GET answers GET and HEAD only`(method: String, expected: String) throws {
        let method = try #require(HTTPRequest.Method(method))
        #expect(decide(.get(method: method), fresh, at: 1).name == expected)
    }

    @Test func `§4 a request with a body is sent`() {
        #expect(decide(.get(hasBody: true), fresh, at: 1) == .forward)
    }

    @Test func `§4 HEAD is answered without the body`() throws {
        #expect(try #require(decide(.get(method: .head), fresh, at: 1).use).part == .head)
    }

    @Test func `§4 the most recent of several stored responses is used`() {
        let old = StoredResponse.of("Cache-Control: max-age=60", "Date: \(date(-20))")
        let new = StoredResponse.of("Cache-Control: max-age=60", "Date: \(date(-10))")
        #expect(decide(.get(), old, new, at: 1).use?.index == 1)
        #expect(decide(.get(), new, old, at: 1).use?.index == 0)
    }

    // MARK: Vary

    @Test(
        arguments: [
            (["Accept: a"], ["Accept: a"], "Accept", true), (["Accept: a"], ["Accept: b"], "Accept", false),
            (["Accept: a"], ["Accept: b"], "Foo", true), (["Foo: 1"], ["Foo: 1"], "accept, FOO", true),
            (["Foo: 1"], [], "foo", false), ([], ["Foo: 1"], "foo", false), ([], [], "foo", true),
            (["Foo: 1"], ["foo:  1 "], "Foo", true), (["Foo: 1", "Foo: 2"], ["Foo: 1, 2"], "Foo", true),
            (["Foo: 1, 2"], ["Foo: 2, 1"], "Foo", false), (["Foo: A"], ["Foo: a"], "Foo", false),
            (["Accept-Language: en;q=1, de"], ["Accept-Language: EN; q=1,de"], "Accept-Language", true),
            (["Foo: 1", "Bar: 2"], ["Foo: 1", "Bar: 3"], "Foo, Bar", false),
            (["Foo: 1"], ["Foo: 1"], "*", false), (["Foo: 1"], ["Foo: 1"], "Foo, *", false),
            (["Foo: "], [], "Foo", false), (["Range: bytes=0-1"], [], "Accept-Encoding", false),
            (["Range: bytes=0-1"], ["Accept-Encoding: identity"], "Accept-Encoding", true),
        ] as [([String], [String], String, Bool)])
    func `§4.1 a stored response is used without validation only if the fields of Vary match`(
        first: [String], second: [String], vary: String, matches: Bool
    ) {
        let stored = StoredResponse.of(
            "Cache-Control: max-age=60", "Vary: \(vary)",
            to: CacheRequest(target: page, headers: fields(first)))
        let decision = decide(CacheRequest(target: page, headers: fields(second)), stored, at: 1)
        #expect(decision.name == (matches ? "fresh" : "forward"))
    }

    @Test func `§4.1 bytes that are no ASCII letters are compared exactly`() throws {
        func request(_ byte: UInt8) -> CacheRequest {
            var fields = HTTPFields()
            fields.append(HTTPField(name: .acceptLanguage, lenientValue: Array("EN, ".utf8) + [byte]))
            return CacheRequest(target: page, headers: fields)
        }
        let stored = StoredResponse.of("Cache-Control: max-age=60", "Vary: Accept-Language", to: request(0xC4))
        #expect(decide(request(0xC4), stored, at: 1).name == "fresh")
        #expect(decide(request(0xE4), stored, at: 1).name == "forward")
    }

    @Test func `§4.1 several variants are stored, and each answers its requests`() {
        let german = StoredResponse.of(
            "Cache-Control: max-age=60", "Vary: Accept-Language", to: .get("Accept-Language: de"))
        let english = StoredResponse.of(
            "Cache-Control: max-age=60", "Vary: Accept-Language", to: .get("Accept-Language: en"))
        #expect(decide(.get("Accept-Language: de"), german, english, at: 1).use?.index == 0)
        #expect(decide(.get("Accept-Language: en"), german, english, at: 1).use?.index == 1)
        #expect(decide(.get("Accept-Language: fr"), german, english, at: 1) == .forward)
    }

    @Test func `§4.1 a matching response with Vary is preferred to a newer one without`() {
        let plain = StoredResponse.of("Cache-Control: max-age=60", "Date: \(date(0))")
        let varied = StoredResponse.of(
            "Cache-Control: max-age=60", "Vary: Foo", "Date: \(date(-9))", to: .get("Foo: 1"))
        #expect(decide(.get("Foo: 1"), plain, varied, at: 1).use?.index == 1)
        #expect(decide(.get("Foo: 2"), plain, varied, at: 1).use?.index == 0)
    }

    @Test func `§4.1 without a matching variant, all tags are offered to the server`() {
        let one = StoredResponse.of("Vary: Foo", "ETag: \"1\"", to: .get("Foo: 1"))
        let two = StoredResponse.of("Vary: Foo", "ETag: W/\"2\"", to: .get("Foo: 2"))
        #expect(decide(.get("Foo: 3"), one, two, at: 1).conditions == ["If-None-Match: \"1\", W/\"2\""])
        #expect(decide(.get("Foo: 3", "Range: bytes=0-1"), one, two, at: 1) == .forward)
    }

    @Test func `§4.1 of many variants, the tags of the most recent ones are offered`() throws {
        let variants = (0..<100).map { number in
            StoredResponse.of(
                "Vary: Foo", "ETag: \"\(number)\"", "Date: \(date(number == 7 ? 100 : Int64(number)))",
                to: CacheRequest(target: page, headers: fields(["Foo: \(number)"])))
        }
        let decision = CacheDecision(for: .get("Foo: x"), stored: variants, now: after(1))
        let tags = try #require(decision.conditions?.first).dropFirst("If-None-Match: ".count).split(separator: ", ")
        #expect(Set(tags) == Set(["\"7\""] + (93..<100).map { "\"\($0)\"" }))
    }

    @Test func `§4.1 long tags are not offered together`() {
        let variants = (0..<4).map { number in
            StoredResponse.of(
                "Vary: Foo", "ETag: \"\(String(repeating: "\(number)", count: 3_000))\"",
                to: CacheRequest(target: page, headers: fields(["Foo: \(number)"])))
        }
        let decision = CacheDecision(for: .get("Foo: x"), stored: variants, now: after(1))
        #expect(decision.conditions?.map(\.utf8.count) == ["If-None-Match: ".count + 3_002])
    }

    @Test func `§4.1 a response that varies by more fields than are compared is validated`() {
        func stored(_ count: Int) -> StoredResponse {
            .of(
                "Cache-Control: max-age=60", "ETag: \"a\"",
                "Vary: " + (0..<count).map { "X-\($0)" }.joined(separator: ", "))
        }
        #expect(decide(.get(), stored(64), at: 1).name == "fresh")
        #expect(decide(.get(), stored(65), at: 1).name == "validate")
    }

    @Test func `§4.1 a response that varies by cookies the transport may add is validated`() {
        let stored = StoredResponse.of("Cache-Control: max-age=60", "Vary: Cookie", "ETag: \"a\"")
        #expect(decide(.get(), stored, at: 1).name == "fresh")
        #expect(decide(.get(cookies: true), stored, at: 1).name == "validate")
        let unknown = StoredResponse.of(
            "Cache-Control: max-age=60", "Vary: Cookie", "ETag: \"a\"", to: .get(cookies: true))
        #expect(decide(.get(cookies: true), unknown, at: 1).name == "validate")
        #expect(decide(.get(), unknown, at: 1).name == "validate")
    }

    @Test func `§4.1 the Accept-Encoding of the transport differs from the program's`() {
        let stored = StoredResponse.of("Cache-Control: max-age=60", "Vary: Accept-Encoding")
        #expect(decide(.get(), stored, at: 1).name == "fresh")
        #expect(decide(.get("Accept-Encoding: gzip"), stored, at: 1) == .forward)
        #expect(decide(.get(decodes: false), stored, at: 1) == .forward)
    }

    @Test func `a body without its content coding is not used where the coding is wanted`() {
        let stored = StoredResponse.of("Cache-Control: max-age=60", "Content-Encoding: gzip")
        #expect(decide(.get(), stored, at: 1).name == "fresh")
        #expect(decide(.get(decodes: false), stored, at: 1) == .forward)
        let encoded = StoredResponse.of(
            "Cache-Control: max-age=60", "Content-Encoding: gzip", to: .get(decodes: false))
        #expect(decide(.get(), encoded, at: 1) == .forward)
        #expect(decide(.get(decodes: false), encoded, at: 1).name == "fresh")
    }

    // MARK: Credentials

    @Test func `a response to a request with credentials is used for the same credentials only`() {
        let ada = CacheOwner(credentials: 7, session: 70)
        let stored = StoredResponse.of("Cache-Control: public, max-age=60", "ETag: \"a\"", owner: 7)
        #expect(decide(.get(owner: ada), stored, at: 1).name == "fresh")
        #expect(decide(.get(owner: CacheOwner(credentials: 7, session: 71)), stored, at: 1).name == "fresh")
        #expect(decide(.get(owner: CacheOwner(credentials: 8, session: 80)), stored, at: 1) == .forward)
        #expect(decide(.get(), stored, at: 1) == .forward)
    }

    @Test func `a response to a request with cookies is used in the same session only`() {
        let stored = StoredResponse.of("Cache-Control: public, max-age=60", "ETag: \"a\"", owner: 70)
        #expect(decide(.get(owner: CacheOwner(credentials: 0, session: 70)), stored, at: 1).name == "fresh")
        #expect(decide(.get(owner: CacheOwner(credentials: 0, session: 71)), stored, at: 1) == .forward)
    }

    // MARK: Directives

    @Test(
        arguments: [
            ("Cache-Control: no-cache", 10, "validate"), ("Pragma: no-cache", 10, "validate"),
            ("Cache-Control: max-age=10", 10, "fresh"), ("Cache-Control: max-age=9", 10, "validate"),
            ("Cache-Control: max-age=0", 10, "validate"), ("Cache-Control: max-age=x", 10, "validate"),
            ("Cache-Control: min-fresh=50", 10, "fresh"), ("Cache-Control: min-fresh=51", 10, "validate"),
            ("Cache-Control: no-store", 10, "fresh"), ("Cache-Control: no-transform", 10, "fresh"),
            ("Cache-Control: only-if-cached", 10, "fresh"), ("Cache-Control: only-if-cached", 70, "refuse"),
            ("Cache-Control: only-if-cached, no-cache", 10, "refuse"), ("Cache-Control: frob=1", 10, "fresh"),
            ("Cache-Control: frob=\"no-cache\"", 10, "fresh"), ("X: y", 60, "validate"),
        ] as [(String, Int64, String)])
    func `§5.2.1 the directives of a request are obeyed`(line: String, seconds: Int64, expected: String) {
        #expect(decide(.get(line), fresh, at: seconds).name == expected)
    }

    @Test func `§5.4 Pragma is ignored if there is a Cache-Control`() {
        #expect(decide(.get("Pragma: no-cache", "Cache-Control: max-age=60"), fresh, at: 1).name == "fresh")
    }

    @Test func `§5.2.1.7 only-if-cached refuses without a stored response`() {
        #expect(decide(.get("Cache-Control: only-if-cached"), at: 1) == .refuse)
        #expect(decide(.get("Cache-Control: only-if-cached", method: .post), fresh, at: 1) == .refuse)
    }

    @Test(arguments: ["no-cache", "NO-CACHE", "no-cache, max-age=60", "max-age=60, no-cache=\"\""])
    func `§5.2.2.4 a response with no-cache is never used without validation`(value: String) {
        let stored = StoredResponse.of("Cache-Control: \(value)", "ETag: \"a\"")
        #expect(decide(.get(), stored, at: 0).name == "validate")
        #expect(decide(.get("Cache-Control: max-stale"), stored, at: 0).name == "validate")
        #expect(decide(.get(mode: .acceptStale), stored, at: 0).name == "validate")
        #expect(decide(.get(mode: .onlyStored), stored, at: 0) == .refuse)
    }

    @Test func `§5.4 Pragma in a response has no meaning`() {
        #expect(decide(.get(), .of("Cache-Control: max-age=60", "Pragma: no-cache"), at: 1).name == "fresh")
    }

    // MARK: Modes

    @Test(
        arguments: [
            (CacheRequest.Mode.standard, 10, "fresh"), (.reload, 10, "forward"), (.revalidate, 10, "validate"),
            (.acceptStale, 10, "fresh"), (.onlyStored, 10, "fresh"), (.standard, 100, "validate"),
            (.reload, 100, "forward"), (.revalidate, 100, "validate"), (.acceptStale, 100, "stale"),
            (.onlyStored, 100, "stale"),
        ] as [(CacheRequest.Mode, Int64, String)])
    func `the mode of a request determines the use of stored responses`(
        mode: CacheRequest.Mode, seconds: Int64, expected: String
    ) {
        #expect(decide(.get(mode: mode), fresh, at: seconds).name == expected)
    }

    @Test func `the mode onlyStored refuses without a stored response`() {
        #expect(decide(.get(mode: .onlyStored), at: 1) == .refuse)
    }

    @Test func `a response without any lifetime is used if the mode accepts stale ones`() {
        #expect(decide(.get(mode: .acceptStale), .of("X: y"), at: 1).name == "stale")
    }

    @Test func `RFC 8246 §2 an immutable response is not revalidated while it is fresh`() {
        let target = "https://a.example/x"
        func get(_ lines: String..., mode: CacheRequest.Mode) -> CacheRequest {
            CacheRequest(target: target, headers: fields(lines), mode: mode)
        }
        let stored = StoredResponse.of(
            "Cache-Control: max-age=60, immutable", "ETag: \"a\"", "Content-Length: 10", to: get(mode: .standard))
        #expect(decide(get(mode: .revalidate), stored, at: 59).name == "fresh")
        #expect(decide(get(mode: .revalidate), stored, at: 60).name == "validate")
        #expect(decide(get("Cache-Control: no-cache", mode: .revalidate), stored, at: 1).name == "validate")
        #expect(decide(get(mode: .reload), stored, at: 1) == .forward)
        #expect(decide(get(mode: .standard), stored, at: 60).name == "validate")
    }

    @Test(arguments: [
        ("https", HTTPVersion.http1_1, 200, ["Content-Length: 10"], true),
        ("https", .http1_1, 200, ["Transfer-Encoding: gzip, Chunked"], true),
        ("https", .http1_1, 200, ["Transfer-Encoding: gzip"], false), ("https", .http1_1, 200, [], false),
        ("https", .http1_0, 200, [], false), ("https", .http1_1, 204, [], true), ("https", .http2, 200, [], true),
        ("https", .http3, 200, [], true), ("http", .http1_1, 200, ["Content-Length: 10"], false),
        ("http", .http2, 200, [], false),
    ])
    func `RFC 8246 §3 immutable is ignored without TLS, and if the body ended with the connection`(
        scheme: String, version: HTTPVersion, status: Int, lines: [String], isFresh: Bool
    ) {
        let request = CacheRequest(target: "\(scheme)://a.example/x", mode: .revalidate)
        var head = ResponseHead(status, ["Cache-Control: max-age=60, immutable"] + lines)
        head.version = version
        let stored = StoredResponse(head, to: request, requestTime: start, responseTime: start, owner: 0)
        #expect(decide(request, stored, at: 1).name == (isFresh ? "fresh" : "validate"))
    }

    // MARK: Invalidation

    @Test(arguments: [
        ("POST", 200, true), ("PUT", 204, true), ("DELETE", 303, true), ("PATCH", 201, true), ("BREW", 200, true),
        ("POST", 400, false), ("POST", 500, false), ("GET", 200, false), ("HEAD", 200, false),
        ("OPTIONS", 200, false), ("PROPFIND", 207, false), ("POST", 100, false),
    ])
    func `§4.4 a successful unsafe request invalidates its target`(
        method: String, status: Int, invalidates: Bool
    ) throws {
        let request = CacheRequest.get(method: try #require(HTTPRequest.Method(method)))
        #expect(
            Invalidation.targets(of: .of(status), to: request, at: url) == (invalidates ? [page] : []))
    }

    @Test(
        arguments: [
            ("/y", "http://a.example/y"), ("y?z#f", "http://a.example/y?z"),
            ("http://a.example:80/y", "http://a.example/y"),
            ("http://b.example/y", nil), ("https://a.example/y", nil), ("http://a.example:81/y", nil),
            ("//b.example/y", nil), ("http://a.example.b.example/", nil), ("http://a.example@b.example/y", nil),
        ] as [(String, String?)])
    func `§4.4 Location and Content-Location of the same origin are invalidated, others are not`(
        value: String, other: String?
    ) {
        let expected = Set([page] + [other].compactMap(\.self))
        let request = CacheRequest.get(method: .post)
        #expect(Invalidation.targets(of: .of(201, "Location: \(value)"), to: request, at: url) == expected)
        #expect(Invalidation.targets(of: .of(200, "Content-Location: \(value)"), to: request, at: url) == expected)
    }

    @Test func `§4.4 an invalidated response must be validated`() {
        let stored = fresh.invalidated()
        for request in [CacheRequest.get(), .get("Cache-Control: max-stale"), .get(mode: .acceptStale)] {
            #expect(decide(request, stored, at: 1).conditions == ["If-None-Match: \"a\""])
        }
    }
}
