// SPDX-License-Identifier: MIT

package import FoundationEssentials
public import HTTPTypes
import RawStructuredFieldValues

extension HTTPField.Name {
    /// Creates a name that is a constant of the program; traps if it is not a token (RFC 9110 §5.6.2).
    ///
    /// ```swift
    /// extension HTTPField.Name {
    ///     static let apiKey = HTTPField.Name(constant: "X-API-Key")
    /// }
    /// ```
    ///
    /// Names from outside of the program are checked by `HTTPFields(validating:)`, which throws.
    public init(constant name: StaticString) {
        guard let name = HTTPField.Name("\(name)") else { preconditionFailure("“\(name)” is not a field name.") }
        self = name
    }
}

extension HTTPField.Name {
    /// `Content-Digest`, the digest of the content of a message (RFC 9530 §2). ``ContentDigest/fieldValue`` returns its
    /// value.
    public static let contentDigest = HTTPField.Name(constant: "Content-Digest")
    /// `Idempotency-Key`, a key by which a server recognizes a request that is sent again
    /// (draft-ietf-httpapi-idempotency-key-header). By default a `RetryPolicy` also retries a POST that has the field.
    /// The library never adds it.
    public static let idempotencyKey = HTTPField.Name(constant: "Idempotency-Key")
    /// `Last-Event-ID`, the ID of the event after which an event stream continues (WHATWG HTML, “The Last-Event-ID
    /// header”). A session's event source sends the field of its request with the first connection, and the ID of the
    /// last event, if any, when it reconnects.
    public static let lastEventID = HTTPField.Name(constant: "Last-Event-ID")
    package static let host = HTTPField.Name(constant: "Host")
}

extension HTTPFields {
    /// Sets `Authorization` to Basic credentials in UTF-8, replacing any previous value. See RFC 7617.
    ///
    /// To remove the field again, set `headers[.authorization]` to `nil`. The credential's ``Credential/schemes`` are
    /// ignored. A session adds no other credential to a request with the field, and returns a challenge of the server
    /// as the response.
    ///
    /// - Throws: ``TransportError/Reason/invalidRequest(_:)`` if the user name contains a colon, which a server would
    ///   take for its end, or if the user name or password contains a control character. The fields are unchanged then.
    public mutating func setBasicAuthorization(_ credential: Credential) throws(TransportError) {
        guard !credential.user.hasControlCharacters, !credential.password.hasControlCharacters else {
            throw TransportError(.invalidRequest(.headerValue(name: "Authorization")))
        }
        guard !credential.user.utf8.contains(UInt8(ascii: ":")) else {
            throw TransportError(.invalidRequest(.option("A user name in Basic credentials cannot contain a colon.")))
        }
        let text = Data("\(credential.user):\(credential.password)".utf8).base64EncodedString()
        self[.authorization] = "Basic " + text
    }

    /// Sets `Authorization` to a bearer token, replacing any previous value. See RFC 6750 §2.1.
    ///
    /// A session adds no other credential to a request with the field, and returns a challenge of the server as the
    /// response.
    ///
    /// - Parameter token: The token, without the word `Bearer`.
    /// - Throws: ``TransportError/Reason/invalidRequest(_:)`` if the token is empty or contains anything but visible
    ///   ASCII characters; the fields are unchanged then. The mark `…` that replaces a token in a recording is accepted.
    public mutating func setBearerAuthorization(_ token: String) throws(TransportError) {
        guard !token.isEmpty, token == Redaction.mark || token.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw TransportError(.invalidRequest(.headerValue(name: "Authorization")))
        }
        self[.authorization] = "Bearer " + token
    }
}

extension HTTPFields {
    /// Creates fields from untrusted names and values, in their order.
    ///
    /// - Parameter pairs: The names and values; names may be repeated, and values may be empty.
    /// - Throws: ``TransportError/Reason/invalidRequest(_:)`` if a name is empty or not a token, or a value contains a
    ///   control character other than a tab, such as CR, LF or NUL, or begins or ends with a space or tab (RFC 9110
    ///   §5.1, §5.5).
    public init(validating pairs: some Sequence<(String, String)>) throws(TransportError) {
        self.init()
        for (name, value) in pairs {
            try checkCount(adding: 1)
            guard let fieldName = HTTPField.Name(name) else {
                throw TransportError(.invalidRequest(.headerName(name)))
            }
            guard HTTPField.isValidValue(value) else {
                throw TransportError(.invalidRequest(.headerValue(name: name)))
            }
            append(HTTPField(name: fieldName, value: value))
        }
    }

    /// The number of fields that a message may have; `append(_:)` traps at 65,535.
    package static var maximumCount: Int { 4096 }

    /// Throws if a request may not have as many fields.
    package func checkCount(adding more: Int = 0) throws(TransportError) {
        guard count + more <= Self.maximumCount else {
            throw TransportError(.invalidRequest(.option("there are more than \(Self.maximumCount) header fields.")))
        }
    }

    /// Adds the fields whose names are missing, with all of their values; those of a request that is refused because it
    /// has too many are left out.
    package mutating func fill(from others: HTTPFields) {
        guard !isEmpty else { return self = others }
        let own = self
        for field in others where count <= Self.maximumCount && !own.contains(field.name) { append(field) }
    }

    /// Returns the value of the first field with a name, without building an index; `nil` if there is no such field.
    package func first(_ name: HTTPField.Name) -> String? {
        first { $0.name == name }?.value
    }
}

/// A member of a structured field, as far as the library reads them (RFC 9651 §3.3), without its parameters.
package enum StructuredValue: Hashable, Sendable {
    case integer(Int64)
    case boolean(Bool)
    case bytes(Data)
    /// A value of another type, or an inner list.
    case other

    fileprivate init(_ member: ItemOrInnerList) {
        guard case .item(let item) = member else {
            self = .other
            return
        }
        switch item.rfc9651BareItem {
        case .integer(let number): self = .integer(number)
        case .bool(let value): self = .boolean(value)
        case .undecodedByteSequence(let text):
            // A sender may leave out the padding (RFC 9651 §4.2.7).
            let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
            self = Data(base64Encoded: text + padding).map { .bytes($0) } ?? .other
        case .decimal, .string, .token, .date, .displayString: self = .other
        }
    }
}

extension HTTPFields {
    /// Returns the value of a structured field that is an item; `nil` if it is missing or malformed.
    package func structuredItem(_ name: HTTPField.Name) -> StructuredValue? {
        parsed(name) { try .item($0.parseItemFieldValue()) }.map { StructuredValue($0) }
    }

    /// Returns the members of a structured field that is a dictionary; `nil` if it is missing or malformed, when the
    /// whole field must be ignored (RFC 9651 §4.2). The last member with a name wins.
    package func structuredDictionary(_ name: HTTPField.Name) -> [String: StructuredValue]? {
        parsed(name) { try $0.parseDictionaryFieldValue() }.map { members in
            Dictionary(members.map { ($0.0, StructuredValue($0.1)) }) { $1 }
        }
    }

    /// Parses the lines of a field as one value, unless they are too long: the time that the parser takes for a
    /// dictionary grows with the square of the number of its members.
    private func parsed<Value>(
        _ name: HTTPField.Name, _ parse: (inout StructuredFieldValueParser<[UInt8]>) throws -> Value
    ) -> Value? {
        guard contains(name) else { return nil }
        let bytes = Array(self[values: name].joined(separator: ", ").utf8)
        guard bytes.count <= 8_192 else { return nil }
        var parser = StructuredFieldValueParser(bytes)
        return try? parse(&parser)
    }
}
