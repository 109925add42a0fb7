// SPDX-License-Identifier: MIT

import ANHTTP
import HTTPTypes

/// The value and parameters of a header field such as `multipart/mixed; boundary="a;b"` (RFC 9110 §5.6.6).
struct HeaderParameters {
    /// The text before the first semicolon, without surrounding whitespace.
    let value: String
    /// The parameters, with names in lower case and values without quotes; the first parameter with a name wins.
    private let parameters: [(name: String, value: String)]

    init(_ field: String) {
        let semicolon = UInt8(ascii: ";")
        let sign = UInt8(ascii: "=")
        var scanner = HeaderScanner(field)
        value = scanner.takeText(before: semicolon)
        var parameters: [(name: String, value: String)] = []
        while scanner.take(semicolon) {
            let name = scanner.takeText(before: sign, semicolon).lowercased()
            guard scanner.take(sign) else { continue }
            scanner.skipBlanks()
            if let value = scanner.takeQuotedString() {
                parameters.append((name, value))
                _ = scanner.takeText(before: semicolon)
            } else {
                parameters.append((name, scanner.takeText(before: semicolon)))
            }
        }
        self.parameters = parameters
    }

    subscript(name: String) -> String? {
        parameters.first { $0.name == name }?.value
    }
}

extension HTTPFields {
    /// The value and parameters of the first `Content-Type`; `nil` without that field.
    var contentTypeParameters: HeaderParameters? {
        first { $0.name == .contentType }.map { HeaderParameters($0.value) }
    }
}

extension ResponseHead {
    /// The charset parameter of the `Content-Type`, in lower case and without quotes; `nil` if absent or empty (RFC
    /// 9110 §8.3.2).
    package var charset: String? {
        guard let charset = headers.contentTypeParameters?["charset"]?.lowercased() else { return nil }
        // Some servers send single quotes, which have no special meaning in HTTP.
        let name = charset.hasPrefix("'") && charset.hasSuffix("'") ? String(charset.dropFirst().dropLast()) : charset
        return name.isEmpty ? nil : name
    }
}
