// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

extension HAR {
    /// Returns the places of an archive that contain one of the given secrets, such as `0.request.headers.3.value`, in
    /// order: for a test of the cassettes in a repository.
    ///
    /// A secret is also found percent-encoded, in Base64, and as a part of a longer text in Base64, as in Basic
    /// credentials.
    ///
    /// - Parameter secrets: The secrets; empty ones are ignored.
    /// - Throws: `EncodingError` for a duration that is not finite.
    public func places(of secrets: [String]) throws -> [String] {
        let forms = secrets.filter { !$0.isEmpty }.flatMap { secret in
            [secret, secret.percentEncoded, Data(secret.utf8).base64EncodedString()]
        }
        var places: [String] = []
        for (index, entry) in entries.enumerated() {
            let value = try JSONDecoder().decode(JSONNode.self, from: HAR.line(entry))
            value.visitTexts("\(index)") { place, text in
                let isFound = forms.contains { text.contains($0) || text.decodedWords.contains($0) }
                if isFound { places.append(place) }
            }
        }
        return places
    }
}

extension String {
    /// The text with all bytes percent-encoded but letters, digits and `-._~` (RFC 3986 §2.3).
    fileprivate var percentEncoded: String {
        utf8.reduce(into: "") { text, byte in
            let scalar = UnicodeScalar(byte)
            if scalar.isASCII,
                scalar.properties.isAlphabetic || (0x30...0x39).contains(byte) || "-._~".utf8.contains(byte)
            {
                text.unicodeScalars.append(scalar)
            } else {
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
    }

    /// The words of the text that are Base64, decoded.
    fileprivate var decodedWords: String {
        split { !($0.isASCII && ($0.isLetter || $0.isNumber || "+/=".contains($0))) }.compactMap { word in
            word.utf8.count < 4 ? nil : Data(base64Encoded: String(word)).map { String(decoding: $0, as: UTF8.self) }
        }.joined(separator: "\n")
    }
}
