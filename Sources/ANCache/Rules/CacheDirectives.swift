// SPDX-License-Identifier: MIT

import ANHTTP

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
        var names: Set<String>?
        for member in members where member.name == name {
            let listed = Set(HeaderScanner.members(of: [member.argument ?? ""]).map { $0.lowercased() })
            guard !listed.isEmpty else { return [] }
            names = (names ?? []).union(listed)
        }
        return names
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
            guard let text, !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                self = .invalid
                return
            }
            self = .value(min(Int64(text) ?? .max, 1 << 31))
        }

        /// The number of seconds; `nil` unless it is valid.
        var valid: Int64? {
            if case .value(let seconds) = self { seconds } else { nil }
        }
    }
}
