// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials

/// The cookies of a ``SessionManager``, set by servers or by the program.
///
/// ```swift
/// try await api.cookies.load(from: "cookies.txt")
/// …
/// try await api.cookies.save(to: "cookies.txt")
/// ```
///
/// The transport stores the cookies. libcurl follows RFC 6265 and, if built with libpsl as in most distributions, uses
/// the public-suffix list, so that no host can set a cookie for all of `co.uk`. Cookies are not shared between
/// managers, and last as long as their manager or a store unless they are saved: a store keeps the transport with its
/// connections. With a transport of the program's own, such as a mock, and if libcurl cannot be set up, no cookies are
/// stored: the store is empty, and setting a cookie throws ``SessionError/cookiesNotStored``.
public struct CookieStore: Sendable {
    package let jar: (any CookieJar)?

    /// Returns all cookies that have not expired, sorted by domain, path and name; none if the transport stores no
    /// cookies.
    public func all() async -> [Cookie] {
        let now = Date.now
        return (await jar?.cookies() ?? []).filter { !$0.isExpired(at: now) }
            .sorted { ($0.domain, $0.path, $0.name) < ($1.domain, $1.path, $1.name) }
    }

    /// Returns the cookies for a URL, longer paths first (RFC 6265 §5.4): those that match its host and path and have
    /// not expired, and the secure ones only if its scheme is `https` or its host `localhost`, `127.0.0.1` or `::1`. Empty
    /// if the URL has no host or the transport stores no cookies.
    ///
    /// An internationalized host must be in its ASCII form (`xn--…`), of which its cookies are stored. Secure cookies are
    /// left out for `wss`; pass the URL with `https` instead.
    public func cookies(for url: URL) async -> [Cookie] {
        await all().filter { $0.matches(url) }.sorted { $0.path.utf8.count > $1.path.utf8.count }
    }

    /// Sets cookies, each replacing one with the same name, domain, path and ``ANHTTP/Cookie/includesSubdomains``. An
    /// expired cookie removes the one that it would replace.
    ///
    /// Any domain is accepted: the rules that restrict servers do not apply to the program. For libcurl, paths that
    /// differ only in case or in a slash at their end are the same; for some versions, such as 7.88, so are names that
    /// differ only in case.
    ///
    /// - Throws: ``SessionError/cookiesNotStored`` if the transport stores no cookies, or
    ///   ``SessionError/invalidCookie(name:)`` if the name or domain of a cookie is empty, its name contains `=` or
    ///   `;`, its value contains `;`, its domain begins with `#`, its path does not begin with a slash, one of these
    ///   contains a control character, or a name with the prefix `__Secure-` or `__Host-` lacks the attributes that it
    ///   requires (RFC 6265bis §4.1.3); no cookie is set then.
    public func set(_ cookies: Cookie...) async throws { try await set(cookies) }

    /// Sets the cookies of an array, as ``set(_:)-(Cookie...)`` does.
    public func set(_ cookies: [Cookie]) async throws {
        guard let jar else { throw SessionError.cookiesNotStored }
        if let invalid = cookies.first(where: { $0.netscapeLine == nil }) {
            throw SessionError.invalidCookie(name: invalid.name)
        }
        await jar.set(cookies)
    }

    /// Removes the cookies with the same name, domain, path and ``ANHTTP/Cookie/includesSubdomains`` as the given ones.
    /// Their other properties, such as the value, are not compared. Cookies that are not stored are ignored. Saved
    /// files are not changed, and with a transport that stores no cookies, this has no effect.
    public func remove(_ cookies: Cookie...) async {
        await jar?.remove(cookies)
    }

    /// Removes the cookies that have not expired and satisfy a predicate. Saved files are not changed, and with a
    /// transport that stores no cookies, this has no effect.
    ///
    /// - Parameter condition: Returns whether to remove a cookie; called once for each, in the order of ``all()``.
    public func removeAll(where condition: (Cookie) -> Bool) async {
        await jar?.remove(all().filter(condition))
    }

    /// Removes all cookies of the manager, also those that have expired. Saved files are not changed, and with a
    /// transport that stores no cookies, this has no effect.
    public func removeAll() async {
        await jar?.removeAll()
    }

    // MARK: Files

    /// Returns all unexpired cookies, including session cookies, as text in the Netscape cookie file format, which curl
    /// and other tools read. Without cookies, the text is only the first line of such a file, a comment.
    ///
    /// The text contains the values of the cookies, which are often secret. A cookie that the format cannot represent,
    /// for example with a control character, is left out.
    public func export() async -> String {
        let lines = await all().compactMap(\.netscapeLine)
        return "# Netscape HTTP Cookie File\n" + lines.map { $0 + "\n" }.joined()
    }

    /// Sets the cookies from text in the Netscape cookie file format, each replacing one with the same name, domain,
    /// path and ``ANHTTP/Cookie/includesSubdomains``.
    ///
    /// Skipped are comments, lines that cannot be parsed, expired cookies, cookies with a path that does not begin with
    /// a slash or with characters that cannot be sent, and those without the attributes that the prefix `__Secure-` or
    /// `__Host-` of their names requires. A line whose expiration is 0 is a session cookie.
    ///
    /// - Parameter text: The text, with one cookie on each line.
    /// - Returns: The number of cookies that were set.
    /// - Throws: ``SessionError/cookiesNotStored`` if the transport stores no cookies, even if the text is empty.
    @discardableResult
    public func `import`(_ text: String) async throws -> Int {
        let cookies = text.utf8.split(separator: UInt8(ascii: "\n")).compactMap { Cookie(netscapeLine: Substring($0)) }
            .filter { !$0.isExpired() && $0.netscapeLine != nil }
        try await set(cookies)
        return cookies.count
    }

    /// Writes all unexpired cookies, including session cookies, to a file in the Netscape cookie file format.
    ///
    /// The file is replaced atomically and gets mode 0600, so that only its owner can read it. It is written on the
    /// executor of the calling task, which is blocked meanwhile. A cookie that the format cannot represent is left out.
    /// Without cookies, also with a transport that stores none, the file has only its first line.
    ///
    /// - Parameter path: The path of the file, absolute or relative to the current directory of the process. Its
    ///   directory must exist.
    /// - Throws: ``SessionError/file(_:)`` if the file cannot be written.
    public func save(to path: String) async throws {
        try PrivateTextFile.write(await export(), to: path)
    }

    /// Sets the cookies from a file in the Netscape cookie file format, each replacing one with the same name, domain,
    /// path and ``ANHTTP/Cookie/includesSubdomains``.
    ///
    /// Skipped are comments, lines that cannot be parsed, expired cookies, cookies with a path that does not begin with
    /// a slash or with characters that cannot be sent, and those without the attributes that the prefix `__Secure-` or
    /// `__Host-` of their names requires. A line whose expiration is 0 is a session cookie.
    ///
    /// - Parameter path: The path of the file, absolute or relative to the current directory of the process. The file
    ///   is read on the executor of the calling task, which is blocked meanwhile.
    /// - Returns: The number of cookies that were set; 0 if the file does not exist.
    /// - Throws: ``SessionError/file(_:)`` if the file exists and cannot be read, or ``SessionError/cookiesNotStored``
    ///   if it exists and the transport stores no cookies.
    @discardableResult
    public func load(from path: String) async throws -> Int {
        guard let text = try PrivateTextFile.read(path) else { return 0 }
        return try await self.import(text)
    }
}

extension SessionManager {
    /// The cookies that the manager's requests send and its servers set; none before the first response, unless the
    /// program sets or loads some. They remain available after the manager was shut down.
    ///
    /// A request neither sends nor sets them if its `handlesCookies` is `false`, or if that is `nil` and
    /// ``ANHTTP/TransferOptions/handlesCookies`` is `false`. With a transport that stores no cookies, such as a mock,
    /// the store is empty, and setting a cookie throws ``SessionError/cookiesNotStored``.
    public nonisolated var cookies: CookieStore {
        CookieStore(jar: pipeline.transport.features.cookies)
    }
}

/// Text files that only their owner can read.
enum PrivateTextFile {
    /// Replaces a file atomically by one with mode 0600.
    ///
    /// - Throws: ``SessionError/file(_:)``
    static func write(_ text: String, to path: String) throws(SessionError) {
        do throws(SystemError) {
            var file = try AtomicFile(destination: path, mode: 0o600)
            try file.write(Data(text.utf8).bytes)
            // Otherwise a power failure could leave an empty file in place of the last one.
            try file.flush()
            try file.commit()
        } catch {
            throw SessionError.file(path, error)
        }
    }

    /// Replaces a file by a title and one line for each value.
    ///
    /// - Throws: ``SessionError/file(_:)``
    static func write(_ title: String, _ lines: [String], to path: String) throws(SessionError) {
        try write(([title] + lines).map { $0 + "\n" }.joined(), to: path)
    }

    /// Returns the values that `parse` returns for the lines of a file; none if there is no such file.
    ///
    /// - Throws: ``SessionError/file(_:)``
    static func values<Value>(in path: String, _ parse: (Substring) -> Value?) throws(SessionError) -> [Value] {
        try read(path)?.split(whereSeparator: \.isNewline).compactMap(parse) ?? []
    }

    /// Returns the text of a file; `nil` if there is no such file.
    ///
    /// - Throws: ``SessionError/file(_:)``
    static func read(_ path: String) throws(SessionError) -> String? {
        do throws(SystemError) {
            return String(decoding: try RegularFile(path: path).readAll(), as: UTF8.self)
        } catch  where error.fileReason == .missing {
            return nil
        } catch {
            throw SessionError.file(path, error)
        }
    }
}
