// SPDX-License-Identifier: MIT

import ANHTTP
package import HTTPTypes

/// The members of `Cache-Control` fields: names in lower case, with their arguments unquoted (RFC 9111 §5.2).
struct CacheDirectives: Hashable, Sendable {
    /// The directives in order; a name may occur repeatedly.
    private(set) var members: [Member] = []

    /// A directive and its argument.
    struct Member: Hashable, Sendable {
        let name: String
        /// The argument without quotes; `nil` if it is missing.
        let argument: String?
    }

    /// Parses the values of all `Cache-Control` fields of a message. A comma or name within a quoted string is part of
    /// that string; a string without a closing quote extends to the end of its field.
    init(_ values: [String]) {
        for value in values { parse(value) }
    }

    private mutating func parse(_ value: String) {
        var (name, argument): ([UInt8], [UInt8]?) = ([], nil)
        var isQuoted = false
        var isEscaped = false
        for byte in value.utf8 {
            switch byte {
            case _ where isEscaped:
                argument?.append(byte)
                isEscaped = false
            case UInt8(ascii: "\\") where isQuoted:
                isEscaped = true
            case UInt8(ascii: "\"") where argument != nil:
                isQuoted.toggle()
            case UInt8(ascii: ",") where !isQuoted:
                append(name, argument)
                (name, argument) = ([], nil)
            case UInt8(ascii: "=") where argument == nil:
                argument = []
            default:
                if argument == nil { name.append(byte) } else { argument?.append(byte) }
            }
        }
        append(name, argument)
    }

    private mutating func append(_ name: [UInt8], _ argument: [UInt8]?) {
        let name = String(decoding: name, as: UTF8.self).trimmingBlanks.lowercased()
        guard !name.isEmpty else { return }
        let argument = argument.map { String(decoding: $0, as: UTF8.self).trimmingBlanks }
        members.append(Member(name: name, argument: argument))
    }

    /// Whether a directive occurs, with or without an argument.
    func contains(_ name: String) -> Bool {
        members.contains { $0.name == name }
    }

    /// Returns the number of seconds of a directive (RFC 9111 §1.2.2).
    func seconds(_ name: String) -> Seconds {
        var result = Seconds.absent
        for member in members where member.name == name {
            let seconds = Seconds(member.argument)
            result = result == .absent || result == seconds ? seconds : .invalid
        }
        return result
    }

    /// Returns the field names listed by a directive, in lower case; empty if it occurs without a list, and `nil` if it
    /// does not occur. One occurrence without a list applies to the whole response.
    func fieldNames(_ name: String) -> Set<String>? {
        var names: Set<String> = []
        for member in members where member.name == name {
            let listed = HeaderScanner.members(of: [member.argument ?? ""])
            guard !listed.isEmpty else { return [] }
            for name in listed { names.insert(name.lowercased()) }
        }
        return names.isEmpty ? nil : names
    }

    /// The argument of a directive that takes a number of seconds.
    enum Seconds: Hashable, Sendable {
        /// The directive does not occur.
        case absent
        /// The argument is missing, is not a number of seconds, or differs between occurrences.
        case invalid
        /// The number of seconds, at most 2³¹.
        case value(Int64)

        /// Parses decimal digits. A number above 2³¹ counts as 2³¹ (RFC 9111 §1.2.2).
        init(_ text: String?) {
            self = text.flatMap { Int64(clampingDigits: $0) }.map { .value(min($0, 1 << 31)) } ?? .invalid
        }

        /// The number of seconds; `nil` unless it is valid.
        var valid: Int64? {
            if case .value(let seconds) = self { seconds } else { nil }
        }
    }
}

/// The cache directives of a request (RFC 9111 §5.2.1, RFC 5861 §4).
package struct RequestDirectives: Hashable, Sendable {
    /// The greatest acceptable age in seconds; `nil` for any.
    package var maxAge: Int64?
    /// The greatest acceptable staleness in seconds: `nil` for none, `.max` for any.
    package var maxStale: Int64?
    /// The time in seconds for which the response must remain fresh; `nil` for none.
    package var minFresh: Int64?
    /// The staleness in seconds that is acceptable if the server fails; `nil` for none.
    package var staleIfError: Int64?
    /// Whether a stored response must be validated.
    package var noCache = false
    /// Whether neither the request nor its response may be stored.
    package var noStore = false
    /// Whether only a stored response is acceptable.
    package var onlyIfCached = false

    /// Creates an empty set of directives.
    package init() {}

    /// Reads the directives from a request's fields. `Pragma: no-cache` counts if there is no `Cache-Control` (§5.4).
    ///
    /// An invalid `max-age` counts as 0 and an invalid `max-stale` as absent, so that the server is asked.
    package init(_ fields: HTTPFields) {
        let values = fields[values: .cacheControl]
        guard !values.isEmpty else {
            noCache = fields[values: .pragma].contains { CacheDirectives([$0]).contains("no-cache") }
            return
        }
        let directives = CacheDirectives(values)
        maxAge = directives.seconds("max-age").validOrZero
        minFresh = directives.seconds("min-fresh").valid
        staleIfError = directives.seconds("stale-if-error").valid
        noCache = directives.contains("no-cache")
        noStore = directives.contains("no-store")
        onlyIfCached = directives.contains("only-if-cached")
        if let stale = directives.members.first(where: { $0.name == "max-stale" }) {
            maxStale = stale.argument == nil ? .max : directives.seconds("max-stale").valid
        }
    }
}

extension CacheDirectives.Seconds {
    /// The number of seconds, 0 if it is invalid, or `nil` if the directive is absent.
    var validOrZero: Int64? {
        switch self {
        case .absent: nil
        case .invalid: 0
        case .value(let seconds): seconds
        }
    }
}

extension HTTPField.Name {
    /// `Pragma` (RFC 9111 §5.4).
    package static let pragma = HTTPField.Name(constant: "Pragma")
    /// `Proxy-Connection`, which is not standardized (RFC 9112 §C.2.2).
    static let proxyConnection = HTTPField.Name(constant: "Proxy-Connection")
    /// `Keep-Alive` (RFC 9112 §C.2.2).
    static let keepAlive = HTTPField.Name(constant: "Keep-Alive")
    /// `Proxy-Authentication-Info` (RFC 9110 §11.7.3).
    static let proxyAuthenticationInfo = HTTPField.Name(constant: "Proxy-Authentication-Info")
}
