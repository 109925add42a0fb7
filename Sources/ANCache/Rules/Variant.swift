// SPDX-License-Identifier: MIT

import ANSystem
import HTTPTypes

/// The request fields nominated by `Vary` with their values in the request of a stored response (RFC 9111 §4.1).
///
/// Values are kept as checksums: they may be secrets, and may be long.
package struct Variant: Hashable, Sendable {
    /// The nominated fields, each once.
    package let fields: [Field]
    /// Whether `Vary` contains `*`.
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
        for value in response[values: .vary] {
            for member in value.split(separator: ",") {
                let name = member.trimmingBlanks.lowercased()
                if !name.isEmpty, !names.contains(name) { names.append(name) }
            }
        }
        isAny = names.contains("*")
        fields = names.filter { $0 != "*" }.map { Field(name: $0, value: request.value(of: $0)) }
    }

    /// Whether no request can be satisfied without validation.
    package var matchesNothing: Bool { isAny || fields.contains { $0.value == .unknown } }

    /// Whether the response depends on any field.
    var isEmpty: Bool { fields.isEmpty && !isAny }

    /// Returns whether a request has the values of this variant.
    func matches(_ request: CacheRequest) -> Bool {
        !isAny && fields.allSatisfy { $0.value != .unknown && $0.value == request.value(of: $0.name) }
    }

    /// Returns the checksum of a field's values, normalized as RFC 9111 §4.1 permits.
    ///
    /// Several fields of a name are one list. Whitespace around its members is insignificant, and for fields whose
    /// members are tokens, so is the case.
    static func checksum(_ name: String, _ values: [String]) -> UInt64 {
        let text =
            switch name {
            case "accept", "accept-charset", "accept-encoding", "accept-language", "te":
                values.flatMap { $0.split(separator: ",") }.map { member in
                    let parts = member.split(separator: ";").map(\.trimmingBlanks).joined(separator: ";")
                    return name == "accept" ? parts : parts.lowercased()
                }.filter { !$0.isEmpty }.joined(separator: ",")
            default:
                values.map(\.trimmingBlanks).joined(separator: ", ")
            }
        return Checksum.of(text)
    }
}
