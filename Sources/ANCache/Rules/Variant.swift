// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import HTTPTypes

/// The request fields nominated by `Vary` with their values in the request of a stored response (RFC 9111 §4.1).
///
/// Values are kept as checksums: they may be secrets, and may be long.
package struct Variant: Hashable, Sendable {
    /// The nominated fields, each once.
    package let fields: [Field]
    /// Whether `Vary` contains `*`, or more fields than are compared.
    package let isAny: Bool

    /// A nominated field.
    package struct Field: Hashable, Sendable {
        /// The name in lower case.
        package let name: String
        /// The value.
        package let value: Value

        /// Creates a field.
        package init(name: String, value: Value) {
            self.name = name
            self.value = value
        }
    }

    /// The value of a field in a request.
    package enum Value: Hashable, Sendable {
        /// The request does not have the field.
        case absent
        /// The checksum of the normalized value.
        case checksum(UInt64)
        /// The transport may add a value that is not known here, such as that of `Cookie`.
        case unknown
    }

    /// Creates a variant from its parts.
    package init(fields: [Field], isAny: Bool) {
        self.fields = fields
        self.isAny = isAny
    }

    /// Reads the nominated fields from a response and their values from its request.
    init(_ response: HTTPFields, of request: CacheRequest) {
        var names: [String] = []
        for member in HeaderScanner.members(of: response[values: .vary]) where names.count <= Self.mostFields {
            let name = member.lowercased()
            if !names.contains(name) { names.append(name) }
        }
        let isAny = names.contains("*") || names.count > Self.mostFields
        self.isAny = isAny
        fields = isAny ? [] : names.map { Field(name: $0, value: request.value(of: $0)) }
    }

    /// The number of fields above which the response is treated as one with `*`.
    private static let mostFields = 64

    /// Whether no request can be satisfied without validation.
    package var matchesNothing: Bool { isAny || fields.contains { $0.value == .unknown } }

    /// Whether the response depends on any field.
    var isEmpty: Bool { fields.isEmpty && !isAny }

    /// Returns whether a request has the values of this variant.
    func matches(_ request: CacheRequest) -> Bool {
        mayMatch(request) && !fields.contains { $0.value == .unknown }
    }

    /// Returns whether a request has the known values of this variant.
    func mayMatch(_ request: CacheRequest) -> Bool {
        !isAny && fields.allSatisfy { $0.value == .unknown || $0.value == request.value(of: $0.name) }
    }

    /// Returns a variant of the same values, and of unknown ones of the further fields that another one names.
    func adding(_ other: Variant) -> Variant {
        let known = Set(fields.map(\.name))
        let further = other.fields.filter { !known.contains($0.name) }.map { Field(name: $0.name, value: .unknown) }
        return Variant(fields: fields + further, isAny: isAny || other.isAny)
    }

    /// Returns the checksum of a field's values, normalized as RFC 9111 §4.1 permits.
    ///
    /// Several fields of a name are one list. Whitespace around its members is insignificant, and for fields whose
    /// members are tokens, so is the case. The value of any other field may be a secret.
    static func checksum(_ name: String, _ values: [String], _ salt: CacheSalt) -> UInt64 {
        guard isNegotiation(name) else {
            return salt.checksum(of: [name] + members(of: values))
        }
        let members = HeaderScanner.members(of: values).map { member in
            let parts = member.split(at: ";").map(\.trimmingBlanks).joined(separator: ";")
            // Other letters stand for bytes that are no UTF-8.
            let lowercased = parts.utf8.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }
            return name == "accept" ? parts : String(decoding: lowercased, as: UTF8.self)
        }
        return Checksum.of(members.joined(separator: ","))
    }

    /// Returns the members of a list, whose blanks are insignificant (RFC 9110 §5.6.1). A comma in quotation marks is
    /// part of a member.
    private static func members(of values: [String]) -> [String] {
        var members: [String] = []
        for value in values {
            var (member, isQuoted) = ("", false)
            for scalar in value.unicodeScalars {
                if scalar == "\"" { isQuoted.toggle() }
                if scalar == ",", !isQuoted {
                    members.append(member.trimmingBlanks)
                    member = ""
                } else {
                    member.unicodeScalars.append(scalar)
                }
            }
            members.append(member.trimmingBlanks)
        }
        return members.filter { !$0.isEmpty }
    }

    /// Whether a field, named in lower case, is one of content negotiation (RFC 9110 §12.5) or `TE`.
    static func isNegotiation(_ name: String) -> Bool {
        switch name {
        case "accept", "accept-charset", "accept-encoding", "accept-language", "te": true
        default: false
        }
    }
}

/// An entity tag (RFC 9110 §8.8.3).
struct EntityTag: Hashable, Sendable {
    /// Whether the tag is marked as weak.
    let isWeak: Bool
    /// The opaque tag with its quotes.
    let opaque: WireText

    /// Parses one tag; `nil` for any other text, and for a tag that is no UTF-8: its bytes, which U+FFFD replaces, cannot
    /// be compared with those of another one, nor sent.
    init?(_ text: some StringProtocol) {
        guard !text.unicodeScalars.contains("\u{FFFD}") else { return nil }
        var rest = Substring(text.trimmingBlanks)
        isWeak = rest.hasPrefix("W/")
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.utf8.count >= 2, rest.hasPrefix("\""), rest.hasSuffix("\""),
            !rest.dropFirst().dropLast().utf8.contains(UInt8(ascii: "\""))
        else { return nil }
        opaque = WireText(String(rest))
    }

    /// Parses the value of `ETag`, also one without quotation marks, which browsers return to the server as it is.
    init?(ofField text: String) {
        if let tag = EntityTag(text) {
            self = tag
            return
        }
        let bare = text.trimmingBlanks
        guard !bare.isEmpty, bare != "*", bare.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != 0x22 && $0 != 0x2C }) else {
            return nil
        }
        (isWeak, opaque) = (false, WireText(bare))
    }

    /// Returns whether the tags are equal and both are strong (RFC 9110 §8.8.3.2).
    func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && opaque == other.opaque
    }

    /// Returns whether the opaque tags are equal.
    func matchesWeakly(_ other: EntityTag) -> Bool {
        opaque == other.opaque
    }

    /// Parses the tags of a list, in which a tag may contain commas, or have no quotation marks. Members that are not tags
    /// are omitted.
    static func list(_ values: [String]) -> [EntityTag] {
        var tags: [EntityTag] = []
        for value in values {
            var member: [UInt8] = []
            var isQuoted = false
            for byte in value.utf8 {
                if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
                if byte == UInt8(ascii: ","), !isQuoted {
                    EntityTag(ofField: String(decoding: member, as: UTF8.self)).map { tags.append($0) }
                    member = []
                } else {
                    member.append(byte)
                }
            }
            EntityTag(ofField: String(decoding: member, as: UTF8.self)).map { tags.append($0) }
        }
        return tags
    }
}
