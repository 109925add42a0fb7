// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials

/// The cookies of a ``SessionManager``: those that servers have set, and those that the program sets.
///
/// ```swift
/// await api.cookies.load(from: "cookies.txt")
/// …
/// try await api.cookies.save(to: "cookies.txt")
/// ```
///
/// They are kept by the transport: libcurl's follow RFC 6265, and the list of public suffixes keeps a host from setting
/// one for all of `co.uk`. They are the manager's own and last as long as it does, unless they are saved. A transport
/// without cookies, such as a mock, has none to list and fails to set any.
public struct CookieStore: Sendable {
    let jar: (any CookieJar)?

    /// All cookies that have not ended, by domain, path and name.
    public func all() async -> [Cookie] {
        let now = Date.now
        return (await jar?.cookies() ?? []).filter { !$0.isExpired(at: now) }
            .sorted { ($0.domain, $0.path, $0.name) < ($1.domain, $1.path, $1.name) }
    }

    /// The cookies that a request to this URL would have, longer paths first (RFC 6265 §5.4).
    public func cookies(for url: URL) async -> [Cookie] {
        await all().filter { $0.matches(url) }.sorted { $0.path.utf8.count > $1.path.utf8.count }
    }

    /// Sets cookies, each in place of one with the same name, domain and path. The program is trusted: no rule about who
    /// may set what is checked.
    ///
    /// - Throws: ``SessionError/cookies(_:)`` when the transport keeps none, or when a part of one cannot be sent; none of
    ///   them is set then.
    public func set(_ cookies: Cookie...) async throws {
        try await set(cookies)
    }

    /// Sets cookies of a list, as `set(_:)` with single ones does.
    public func set(_ cookies: [Cookie]) async throws {
        guard let jar else { throw SessionError.cookies(.notKept) }
        if let invalid = cookies.first(where: { $0.netscapeLine == nil }) {
            throw SessionError.cookies(.invalid(name: invalid.name))
        }
        await jar.set(cookies)
    }

    /// Removes cookies by their names, domains and paths.
    public func remove(_ cookies: Cookie...) async {
        await jar?.remove(cookies)
    }

    /// Removes the cookies for which `condition` holds.
    public func removeAll(where condition: (Cookie) -> Bool) async {
        await jar?.remove(all().filter(condition))
    }

    /// Removes all cookies.
    public func removeAll() async {
        await jar?.removeAll()
    }

    // MARK: Files

    /// The cookies as text in Netscape's format, which curl and others read.
    public func export() async -> String {
        let lines = await all().compactMap(\.netscapeLine)
        return "# Netscape HTTP Cookie File\n" + lines.map { $0 + "\n" }.joined()
    }

    /// Sets the cookies of a text in Netscape's format, except those that have ended and lines that are none.
    ///
    /// - Returns: How many were set.
    /// - Throws: ``SessionError/cookies(_:)`` when the transport keeps none.
    @discardableResult
    public func `import`(_ text: String) async throws -> Int {
        let cookies = text.split(whereSeparator: \.isNewline).compactMap { Cookie(netscapeLine: $0) }
            .filter { !$0.isExpired() && $0.netscapeLine != nil }
        try await set(cookies)
        return cookies.count
    }

    /// Writes all cookies, those of the session too, to a file that only its owner can read, in Netscape's format. The file
    /// is complete, or what it was before.
    ///
    /// - Throws: ``SessionError/file(_:)``.
    public func save(to path: String) async throws {
        let text = Data(await export().utf8)
        do throws(SystemError) {
            var file = try AtomicFile(destination: path, mode: 0o600)
            try file.write(text.bytes)
            try file.commit()
        } catch {
            throw SessionError.file(path, error)
        }
    }

    /// Sets the cookies of a file in Netscape's format.
    ///
    /// - Returns: How many were set; 0 where there is no file.
    /// - Throws: ``SessionError/file(_:)`` when there is one that cannot be read, ``SessionError/cookies(_:)`` when the
    ///   transport keeps none.
    @discardableResult
    public func load(from path: String) async throws -> Int {
        let text: String
        do throws(SystemError) {
            text = String(decoding: try RegularFile(path: path).readAll(), as: UTF8.self)
        } catch  where error.fileReason == .missing {
            return 0
        } catch {
            throw SessionError.file(path, error)
        }
        return try await self.import(text)
    }
}

extension SessionManager {
    /// The cookies of this manager.
    public nonisolated var cookies: CookieStore { CookieStore(jar: pipeline.transport.cookieJar) }
}
