// SPDX-License-Identifier: MIT

import ANHTTP

/// The value of a `Strict-Transport-Security` field (RFC 6797 §6.1).
package struct StrictTransportField: Hashable {
    /// The number of seconds for which the host is known, at most `Int64.max`; 0 to forget it.
    package let maximumAge: Int64
    package let includesSubdomains: Bool

    /// Parses a field; `nil` if it is malformed: without `max-age`, with a directive that occurs twice, or with an
    /// argument of the wrong form. Unknown directives are ignored.
    package init?(_ value: String) {
        var scanner = HeaderScanner(value)
        var directives: [String: String?] = [:]
        repeat {
            scanner.skipBlanks()
            let name = scanner.takeToken().lowercased()
            scanner.skipBlanks()
            var argument: String?
            if scanner.take(UInt8(ascii: "=")) {
                scanner.skipBlanks()
                argument = scanner.takeQuotedString() ?? scanner.takeToken()
                scanner.skipBlanks()
            }
            // An empty directive is allowed, such as the one after a final semicolon.
            if name.isEmpty, argument == nil { continue }
            guard !name.isEmpty, directives.updateValue(argument, forKey: name) == nil else { return nil }
        } while scanner.take(UInt8(ascii: ";"))
        guard scanner.next == nil, let age = directives["max-age"] ?? nil, !age.isEmpty,
            age.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        else { return nil }
        maximumAge = Int64(age) ?? .max
        switch directives["includesubdomains"] {
        case nil: includesSubdomains = false
        case .some(nil): includesSubdomains = true
        case .some(.some): return nil
        }
    }
}
