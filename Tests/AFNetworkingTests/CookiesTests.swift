// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Testing

/// Cookies are those of the configuration's `HTTPCookieStorage`.
@Suite(.timeLimit(.minutes(5))) struct CookiesTests {
    private static let a = Cookie(name: "a", value: "1", domain: "h.example")
    private static let b = Cookie(name: "b", value: "2", domain: "h.example", path: "/p/")

    private static func value(_ cookie: Cookie, _ value: String) -> Cookie {
        var copy = cookie
        copy.value = value
        return copy
    }

    /// The content of a store, after both had the cookies `a` and `b`, and what is carried over to the other store.
    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let cookies: [Cookie]
        let set: [Cookie]
        let removed: [Cookie]
    }

    private static let expired = Cookie(name: "a", value: "1", domain: "h.example", expires: .distantPast)
    private static let unsendable = Cookie(name: "x;", value: "1", domain: "h.example")
    private static let wider = Cookie(name: "a", value: "1", domain: "h.example", includesSubdomains: true)
    private static let rows = [
        Row(testDescription: "unchanged", cookies: [b, a], set: [], removed: []),
        Row(testDescription: "a new value", cookies: [value(a, "3"), b], set: [value(a, "3")], removed: []),
        Row(testDescription: "missing", cookies: [b], set: [], removed: [a]),
        Row(testDescription: "expired", cookies: [expired, b], set: [], removed: [a]),
        Row(testDescription: "not to be sent", cookies: [a, b, unsendable], set: [], removed: []),
        Row(testDescription: "another domain", cookies: [a, b, wider], set: [wider], removed: []),
        Row(testDescription: "set twice", cookies: [a, b, value(a, "3")], set: [value(a, "3")], removed: []),
    ]

    @Test(arguments: rows, [CookieMirror.Side.storage, .jar])
    func `the changes of one store are carried over to the other`(row: Row, side: CookieMirror.Side) {
        var mirror = CookieMirror()
        let first = mirror.changes(of: side, to: [Self.a, Self.b])
        #expect(Set(first.updated) == [Self.a, Self.b] && first.removed.isEmpty)
        // libcurl drops the slash at the end of a path.
        var inJar = Self.b
        inJar.path = "/p"
        mirror.note(first, storage: [Self.a, Self.b], jar: [Self.a, side == .storage ? inJar : Self.b])
        let changes = mirror.changes(of: side, to: row.cookies)
        #expect(changes.updated == row.set && changes.removed == row.removed)
        let other = side == .storage ? CookieMirror.Side.jar : .storage
        #expect(mirror.changes(of: other, to: [Self.a, side == .storage ? inJar : Self.b]).isEmpty)
    }

    @Test(arguments: [CookieMirror.Side.storage, .jar])
    func `a cookie that has expired by itself was not removed`(side: CookieMirror.Side) {
        let (end, other) = (Date.now.addingTimeInterval(60), side == .storage ? CookieMirror.Side.jar : .storage)
        let brief = Cookie(name: "a", value: "1", domain: "h.example", expires: end)
        var mirror = CookieMirror()
        mirror.note(mirror.changes(of: side, to: [brief, Self.b]), storage: [brief, Self.b], jar: [brief, Self.b])
        for cookies in [[brief, Self.b], [Self.b]] {
            #expect(mirror.changes(of: side, to: cookies, at: end).isEmpty)
        }
        let renewed = Self.value(Self.a, "2")
        #expect(mirror.changes(of: other, to: [renewed, Self.b], at: end).updated == [renewed])
        // One that is missing before was.
        #expect(mirror.changes(of: side, to: [Self.b], at: end.addingTimeInterval(-1)).removed == [brief])
    }

    @Test func `a removal does not apply to a cookie that the storage has received since`() throws {
        let storage = try makeStorage()
        func set(_ value: String) throws {
            try storage.setCookie(
                #require(HTTPCookie(properties: [.name: "a", .value: value, .path: "/", .domain: "h.example"])))
        }
        try set("1")
        var mirror = CookieMirror()
        mirror.note(mirror.changes(of: .storage, to: [Self.a]), storage: [Self.a], jar: [Self.a])
        try set("2")
        let removal = mirror.changes(of: .jar, to: [])
        #expect(removal.removed == [Self.a])
        storage.apply(removal, since: mirror)
        let newer = Self.value(Self.a, "2")
        #expect(storage.cookies?.map(\.value) == ["2"])
        mirror.note(removal, storage: [newer], jar: [])
        #expect(mirror.changes(of: .storage, to: [newer]).updated == [newer])
        #expect(mirror.changes(of: .jar, to: []).isEmpty)
    }

    /// As by a response to another manager during a logout.
    @Test func `a removal applies to a cookie whose life was extended since`() throws {
        let storage = try makeStorage()
        var short = Self.a
        short.expires = .now + 600
        let end = Date.now + 6_000
        let properties: [HTTPCookiePropertyKey: Any] = [
            .name: "a", .value: short.value, .path: "/", .domain: "h.example", .expires: end,
        ]
        try storage.setCookie(#require(HTTPCookie(properties: properties)))
        var mirror = CookieMirror()
        mirror.note(mirror.changes(of: .storage, to: [short]), storage: [short], jar: [short])
        storage.apply(mirror.changes(of: .jar, to: []), since: mirror)
        #expect(storage.cookies?.isEmpty == true)
    }

    @Test func `cookies that have expired by themselves are forgotten`() {
        var mirror = CookieMirror()
        for index in 0..<10 {
            var short = Self.value(Self.a, "\(index)")
            short.expires = .now - 10
            let changes = mirror.changes(of: .jar, to: [short], at: .now - 20)
            #expect(changes.updated == [short])
            mirror.note(changes, storage: [short], jar: [short])
        }
        #expect(mirror.count(of: .jar) == 0 && mirror.count(of: .storage) == 0)
    }

    @Test func `a cookie that changes while others are carried over is still a change`() {
        var mirror = CookieMirror()
        let changes = mirror.changes(of: .storage, to: [Self.a])
        mirror.note(changes, storage: [Self.a], jar: [Self.a, Self.b])
        #expect(mirror.changes(of: .jar, to: [Self.a, Self.b]).updated == [Self.b])
        // The store refused the cookie: it is not a removal.
        let refused = mirror.changes(of: .storage, to: [Self.a, Self.b])
        mirror.note(refused, storage: [Self.a, Self.b], jar: [Self.a])
        #expect(mirror.changes(of: .jar, to: [Self.a]).isEmpty)
    }

    @Test func `a cookie that a response has changed while it was carried over is still a change`() {
        let newer = Self.value(Self.a, "2")
        var mirror = CookieMirror()
        mirror.note(mirror.changes(of: .storage, to: [Self.a]), storage: [Self.a], jar: [newer])
        #expect(mirror.changes(of: .jar, to: [newer]).updated == [newer])
        #expect(mirror.changes(of: .storage, to: [Self.a]).isEmpty)
        mirror.note(mirror.changes(of: .jar, to: [newer]), storage: [newer], jar: [newer])
        // The same after a removal.
        mirror.note(mirror.changes(of: .storage, to: []), storage: [], jar: [newer])
        #expect(mirror.changes(of: .jar, to: [newer]).updated == [newer])
        #expect(mirror.changes(of: .storage, to: []).isEmpty)
    }

    @Test(arguments: ["/app/", "/app", "/"], ["h.example", ".H.example"])
    func `a storage receives changes under its own spelling of paths and domains`(path: String, domain: String) throws {
        let storage = try makeStorage()
        func store(_ value: String) throws {
            try storage.setCookie(
                #require(HTTPCookie(properties: [.name: "sid", .value: value, .path: path, .domain: domain])))
        }
        func contents() -> [String] {
            (storage.cookies ?? []).map { "\($0.domain) \($0.path) \($0.name)=\($0.value)" }
        }
        try store("1")
        let before = contents()
        // libcurl drops the slash at the end of a path, and writes domains in lower case.
        var inJar = Cookie(
            name: "sid", value: "1", domain: "h.example", includesSubdomains: domain.hasPrefix("."),
            path: path.count > 1 ? "/app" : "/")
        var mirror = CookieMirror()
        mirror.note(mirror.changes(of: .storage, to: [inJar]), storage: [inJar], jar: [inJar])
        inJar.value = "2"
        let update = mirror.changes(of: .jar, to: [inJar])
        storage.apply(update, since: mirror)
        mirror.note(update, storage: [inJar], jar: [inJar])
        #expect(contents() == before.map { $0.replacing("=1", with: "=2") })
        storage.apply(mirror.changes(of: .jar, to: []), since: mirror)
        #expect(contents() == [])
    }

    // MARK: Managers

    /// An empty JSON object with a cookie.
    private static func setting(_ cookie: String) -> Script {
        .reply(headers: ["Content-Type": "application/json", "Set-Cookie": cookie], body: .string("{}"))
    }

    /// Serves a login that sets a cookie, a logout that removes it, and an echo of the request's cookies.
    private func withServer(_ body: (StubServer) async throws -> Void) async throws {
        try await StubServer.with { server in
            server.route("/login", Self.setting("sid=1; Path=/; HttpOnly; Max-Age=60"))
            server.route("/logout", Self.setting("sid=; Path=/; Max-Age=0"))
            server.route("/moved") { _ in
                .reply(status: 302, headers: ["Location": "/echo", "Set-Cookie": "hop=1; Path=/"])
            }
            server.route("/lost") { _ in
                .reply(status: 302, headers: ["Location": "app://x", "Set-Cookie": "lost=1; Path=/"])
            }
            server.route("/echo") { .json(#"{"cookie": "\#($0.headers["Cookie"] ?? "none")"}"#) }
            try await body(server)
        }
    }

    private func manager(_ server: StubServer, _ storage: HTTPCookieStorage?) -> AFHTTPSessionManager {
        AFHTTPSessionManager(for: server) { $0.httpCookieStorage = storage }
    }

    private func makeStorage() throws -> HTTPCookieStorage {
        try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
    }

    private func cookies(_ manager: AFHTTPSessionManager, _ path: String = "echo") async -> String? {
        await manager.fetch(path).dictionary?["cookie"] as? String
    }

    @Test func `a manager sends the cookies that another one received, until a third one removes them`() async throws {
        try await withServer { server in
            let storage = try makeStorage()
            #expect(await manager(server, storage).fetch("login").error == nil)
            let stored = try #require(storage.cookies?.first)
            #expect((stored.name, stored.value, stored.domain, stored.path) == ("sid", "1", "127.0.0.1", "/"))
            #expect(stored.isHTTPOnly && !stored.isSecure && stored.expiresDate != nil)
            let second = manager(server, storage)
            #expect(await cookies(second) == "sid=1")
            #expect(await manager(server, storage).fetch("logout").error == nil)
            #expect(storage.cookies?.isEmpty == true)
            #expect(await cookies(second) == "none")
        }
    }

    @Test func `cookies of redirects and failed requests are stored, and each manager's own storage is private`()
        async throws
    {
        try await withServer { server in
            let storage = try makeStorage()
            #expect(await cookies(manager(server, storage), "moved") == "hop=1")
            #expect(await manager(server, storage).fetch("lost").error?.code == -1010)
            #expect(storage.cookies?.map(\.name).sorted() == ["hop", "lost"])
            #expect(try await cookies(manager(server, makeStorage())) == "none")
            #expect(await manager(server, nil).fetch("login").error == nil)
            let without = manager(server, nil)
            #expect(await without.fetch("login").error == nil)
            #expect(await cookies(without) == "none")
        }
    }

    @Test func `the program sets, changes and deletes cookies in the storage`() async throws {
        try await withServer { server in
            let storage = try makeStorage()
            let manager = manager(server, storage)
            func cookie(_ value: String) throws -> HTTPCookie {
                try #require(
                    HTTPCookie(properties: [.name: "own", .value: value, .domain: "127.0.0.1", .path: "/"]))
            }
            try storage.setCookie(cookie("1"))
            #expect(await cookies(manager) == "own=1")
            try storage.setCookie(cookie("2"))
            #expect(await cookies(manager) == "own=2")
            #expect(await manager.coreSession.cookies.all().map(\.value) == ["2"])
            try storage.deleteCookie(cookie("2"))
            #expect(await cookies(manager) == "none")
            await #expect(throws: Never.self) {
                try await manager.coreSession.cookies.set(Cookie(name: "core", value: "1", domain: "127.0.0.1"))
            }
            #expect(await cookies(manager) == "core=1")
            #expect(storage.cookies?.map(\.name) == ["core"])
        }
    }

    @Test func `the default configuration has the shared storage, and a reset keeps the cookies`() async throws {
        try await withServer { server in
            let manager = AFHTTPSessionManager(baseURL: server.url("/"))
            manager.completionQueue = DispatchQueue(label: "completion")
            let name = "c\(UInt32.random(in: .min ... .max))"
            let cookie = try #require(
                HTTPCookie(properties: [.name: name, .value: "1", .domain: "127.0.0.1", .path: "/"]))
            HTTPCookieStorage.shared.setCookie(cookie)
            defer { HTTPCookieStorage.shared.deleteCookie(cookie) }
            #expect(await cookies(manager)?.contains("\(name)=1") == true)
            manager.invalidateSessionCancelingTasks(true, resetSession: true)
            #expect(await cookies(manager)?.contains("\(name)=1") == true)
            let shared = AFHTTPSessionManager(session: SessionManager(baseURL: server.url("/")))
            shared.completionQueue = DispatchQueue(label: "completion")
            #expect(await cookies(shared) == "none")
        }
    }

    @Test func `cookies of many requests at the same time are all stored`() async throws {
        try await StubServer.with { server in
            server.fallback { Self.setting("c\($0.target.dropFirst())=1; Path=/") }
            let storage = try makeStorage()
            let managers = [manager(server, storage), manager(server, storage)]
            await withTaskGroup { group in
                for number in 0..<40 {
                    group.addTask { _ = await managers[number % 2].fetch("\(number)") }
                }
            }
            #expect(storage.cookies?.count == 40)
        }
    }
}
