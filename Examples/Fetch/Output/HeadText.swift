// SPDX-License-Identifier: MIT

package import AsyncNetworking
import FoundationEssentials

/// The text of heads, with a line break after each line.
package enum HeadText {
    /// Returns the request line and the header fields set by the program, without their secrets. The library adds others.
    package static func of(_ request: Request) -> String {
        let url = request.url
        let query = url.query(percentEncoded: true).map { "?" + $0 } ?? ""
        let path = url.path(percentEncoded: true)
        let port = url.port.map { ":\($0)" } ?? ""
        return "\(request.method.rawValue) \(Redaction.byName.url((path.isEmpty ? "/" : path) + query))\n"
            + "Host: \(url.host(percentEncoded: true) ?? "")\(port)\n" + of(Redaction.byName.fields(request.headers))
            + "\n"
    }

    /// Returns the status line, the header fields, and an empty line.
    package static func of(_ head: ResponseHead) -> String {
        let phrase = head.status.reasonPhrase
        return "\(head.version) \(head.status.code)\(phrase.isEmpty ? "" : " " + phrase.printable)\n" + of(head.headers)
            + "\n"
    }

    /// Returns the header fields.
    package static func of(_ fields: HTTPFields) -> String {
        fields.map { "\($0.name.rawName): \($0.value.printable)\n" }.joined()
    }
}

extension String {
    /// Returns the text with a prefix before each line.
    func prefixed(_ prefix: String) -> String {
        split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { prefix + $0 + "\n" }.joined()
    }
}
