// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
package import HTTPTypes

/// The header fields that a session adds to every request by default: `Accept-Language` and `User-Agent`.
///
/// They are a pure function of the given description; see ``init(process:libraryVersion:)``.
package struct DefaultHeaders: Hashable, Sendable {
    /// The value of `Accept-Language`; `nil` for the C and POSIX locales.
    package let acceptLanguage: String?
    /// The value of `User-Agent`.
    package let userAgent: String

    /// Creates the fields for a process.
    package init(process: ProcessDescription, libraryVersion: String) {
        acceptLanguage = Self.acceptLanguage(environment: process.environment)
        userAgent = Self.userAgent(process: process, libraryVersion: libraryVersion)
    }

    /// The fields, ready to be added to a request.
    package var fields: HTTPFields {
        var fields = HTTPFields()
        if let acceptLanguage { fields.append(HTTPField(name: .acceptLanguage, value: acceptLanguage)) }
        fields.append(HTTPField(name: .userAgent, value: userAgent))
        return fields
    }

    /// Returns the value of `Accept-Language` for an environment, such as `en-US;q=1, fr;q=0.9` with at most six
    /// languages.
    ///
    /// The locale is the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is not empty. The result is `nil` without a
    /// locale and for the C and POSIX locales; otherwise the colon-separated list in `LANGUAGE` takes precedence over
    /// the language of the locale, as in gettext(3).
    package static func acceptLanguage(environment: [String: String]) -> String? {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        guard let locale, let ownTag = languageTag(locale: locale) else { return nil }
        var tags: [String] = []
        for name in (environment["LANGUAGE"] ?? "").split(at: ":") {
            if let tag = languageTag(locale: String(name)), !tags.contains(tag) { tags.append(tag) }
        }
        if tags.isEmpty { tags = [ownTag] }
        let qualities = ["1", "0.9", "0.8", "0.7", "0.6", "0.5"]
        return zip(tags, qualities).map { "\($0);q=\($1)" }.joined(separator: ", ")
    }

    /// Returns `program/version (Linux; architecture) AsyncNetworking/version`, restricted to valid tokens and comments.
    ///
    /// The release of the kernel is left out: it would tell every server which fixes the system lacks, and is needlessly
    /// fine-grained detail (RFC 9110 §10.1.5).
    package static func userAgent(process: ProcessDescription, libraryVersion: String) -> String {
        let library = product("AsyncNetworking", libraryVersion)
        return "\(product(process.program, process.version)) (Linux; \(comment(process.architecture))) \(library)"
    }

    /// Returns the BCP 47 tag of a locale, such as `sr-Latn-RS` for `sr_RS.UTF-8@latin`; `nil` for C, POSIX and invalid
    /// names.
    private static func languageTag(locale: String) -> String? {
        let parts = locale.split(at: "@", maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = parts.first?.prefix(while: { $0 != "." }) else { return nil }
        let subtags = name.split(whereSeparator: { $0 == "_" || $0 == "-" })
        guard let language = subtags.first, 2...3 ~= language.utf8.count, language.utf8.allSatisfy(isLetter) else {
            return nil
        }
        var script: String?
        var region: String?
        for subtag in subtags.dropFirst() {
            switch subtag.utf8.count {
            case 4 where script == nil && subtag.utf8.allSatisfy(isLetter): script = String(subtag)
            case 2 where region == nil && subtag.utf8.allSatisfy(isLetter): region = String(subtag)
            case 3 where region == nil && subtag.utf8.allSatisfy(isDigit): region = String(subtag)
            default: return nil
            }
        }
        switch parts.dropFirst().first {
        case "latin": script = "Latn"
        case "cyrillic": script = "Cyrl"
        default: break
        }
        let capitalized = script.map { $0.prefix(1).uppercased() + $0.dropFirst().lowercased() }
        return [language.lowercased(), capitalized, region?.uppercased()].compactMap { $0 }.joined(separator: "-")
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
    }

    private static func product(_ name: String, _ version: String?) -> String {
        let version = version.map(token) ?? ""
        let name = token(name)
        return (name.isEmpty ? "unknown" : name) + (version.isEmpty ? "" : "/" + version)
    }

    /// Returns the text as a token: other ASCII characters are replaced by hyphens, and non-ASCII characters removed.
    private static func token(_ text: String) -> String {
        var token = ""
        for byte in text.utf8 where byte < 0x80 {
            token.unicodeScalars.append(HeaderScanner.isTokenByte(byte) ? UnicodeScalar(byte) : "-")
        }
        return token
    }

    /// Returns the text as part of a comment: printable ASCII characters without parentheses and backslashes.
    private static func comment(_ text: String) -> String {
        String(decoding: text.utf8.filter { 0x20..<0x7F ~= $0 && !"()\\".utf8.contains($0) }, as: UTF8.self)
    }
}

/// A description of the process and its system, on which the default header fields are based.
package struct ProcessDescription: Hashable, Sendable {
    /// The name of the program.
    package var program: String
    /// The version of the program; `nil` if it is unknown.
    package var version: String?
    /// The architecture that the program was built for, such as `x86_64`.
    package var architecture: String
    /// The environment variables, which determine the locale.
    package var environment: [String: String]

    /// Creates a description, by default for this library's architecture and an empty environment.
    package init(
        program: String, version: String? = nil, architecture: String = Self.architecture,
        environment: [String: String] = [:]
    ) {
        self.program = program
        self.version = version
        self.architecture = architecture
        self.environment = environment
    }

    /// Returns the description of this process: the last component of `argv[0]` and the initial environment.
    ///
    /// The environment is read from `/proc` on each call (proc(5)), and empty if it cannot be read.
    package static func current(version: String? = nil) -> ProcessDescription {
        ProcessDescription(
            program: CommandLine.arguments.first?.split(at: "/").last.map(String.init) ?? "unknown",
            version: version,
            environment: environment)
    }

    /// The architecture that this library was built for: `x86_64`, `aarch64` or `unknown`.
    package static var architecture: String {
        #if arch(x86_64)
            "x86_64"
        #elseif arch(arm64)
            "aarch64"
        #else
            "unknown"
        #endif
    }

    private static var environment: [String: String] {
        guard let contents = try? Data(contentsOf: URL(filePath: "/proc/self/environ")) else { return [:] }
        var environment: [String: String] = [:]
        for entry in String(decoding: contents, as: UTF8.self).split(at: "\0") {
            let parts = entry.split(at: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { environment[String(parts[0])] = String(parts[1]) }
        }
        return environment
    }
}
