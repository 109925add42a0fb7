// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension URL {
    /// The URL as text for messages, without possible secrets.
    ///
    /// User information, the values of the query, those without a name, and the fragment are removed; OAuth 2.0 puts tokens into fragments (RFC 6749
    /// §4.2.2). For a URL without a host, such as a mistyped `https:user:password@host`, only the scheme remains.
    package var redactedDescription: String {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return "(invalid URL)" }
        guard let host = components.host, !host.isEmpty else { return components.scheme.map { "\($0):…" } ?? "…" }
        components.user = nil
        components.password = nil
        components.fragment = nil
        if let query = components.percentEncodedQuery {
            components.percentEncodedQuery = Self.redactedQuery(query).replacing("…", with: "%E2%80%A6")
        }
        return (components.string ?? "(invalid URL)").replacing("%E2%80%A6", with: "…")
    }

    /// Returns the query of a URL or a form for messages, without its values and those without a name.
    package static func redactedQuery(_ query: String) -> String {
        query.split(separator: "&", omittingEmptySubsequences: false)
            .map { pair in pair.isEmpty ? "" : (pair.firstIndex(of: "=").map { pair[...$0] } ?? "") + "…" }
            .joined(separator: "&")
    }
}

extension String {
    /// The text of a message without the user information of URLs in it, also malformed ones: what stands between `//` and
    /// the last `@` before the next blank.
    package var withoutUserInformation: String {
        var result = ""
        var rest = self[...]
        while let slashes = rest.firstRange(of: "//") {
            result += rest[..<slashes.upperBound]
            rest = rest[slashes.upperBound...]
            let word = rest.prefix { !$0.isWhitespace }
            if let sign = word.lastIndex(of: "@") {
                result += "…"
                rest = rest[sign...]
            }
        }
        return result + rest
    }
}
