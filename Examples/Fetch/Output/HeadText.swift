// SPDX-License-Identifier: MIT

package import AsyncNetworking
import FoundationEssentials

/// Heads as text, each line with its end.
package enum HeadText {
    /// The request line and the fields that the program asked for; the library adds some.
    package static func of(_ request: Request) -> String {
        let url = request.url
        let query = url.query(percentEncoded: true).map { "?" + $0 } ?? ""
        let path = url.path(percentEncoded: true)
        let port = url.port.map { ":\($0)" } ?? ""
        return "\(request.method.rawValue) \(path.isEmpty ? "/" : path)\(query)\n"
            + "Host: \(url.host(percentEncoded: true) ?? "")\(port)\n" + of(hidingSecrets(request.headers)) + "\n"
    }

    /// The status line, the fields, and an empty line.
    package static func of(_ head: ResponseHead) -> String {
        let phrase = head.status.reasonPhrase
        return "\(head.version) \(head.status.code)\(phrase.isEmpty ? "" : " " + phrase)\n" + of(head.headers) + "\n"
    }

    /// The fields.
    package static func of(_ fields: HTTPFields) -> String {
        fields.map { "\($0.name.rawName): \($0.value)\n" }.joined()
    }

    private static func hidingSecrets(_ fields: HTTPFields) -> HTTPFields {
        var fields = fields
        for name in [HTTPField.Name.authorization, .proxyAuthorization] where fields[name] != nil {
            fields[name] = "…"
        }
        return fields
    }
}

extension String {
    /// The text with a word before each of its lines.
    func prefixed(_ prefix: String) -> String {
        split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { prefix + $0 + "\n" }.joined()
    }
}
