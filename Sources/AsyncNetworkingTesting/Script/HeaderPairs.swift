// SPDX-License-Identifier: MIT

import ANHTTP

/// Header fields as sent over a connection: in order, with their original case, and with repeated names.
///
/// The type of ``Reply/headers`` and ``RecordedRequest/headers``, and of the trailer fields of both.
///
/// Can be written as a dictionary literal, which keeps order and repetitions:
/// `["Set-Cookie": "a=1", "Set-Cookie": "b=2"]`. Two values are equal if they have the same fields in the same order
/// and with the same case.
public struct HeaderPairs: Hashable, Sendable, RandomAccessCollection, ExpressibleByDictionaryLiteral {
    private var pairs: [HeaderPair]

    /// Creates fields from pairs of a name and a value, which are not checked, in their order; without an argument,
    /// there are no fields.
    public init(_ pairs: [HeaderPair] = []) {
        self.pairs = pairs
    }

    /// Creates fields from a dictionary literal, in its order; repeated names are kept. The fields are not checked.
    public init(dictionaryLiteral elements: (String, String)...) {
        pairs = elements.map(HeaderPair.init)
    }

    /// The position of the first field: 0.
    public var startIndex: Int { 0 }
    /// The position after the last field, equal to the number of fields.
    public var endIndex: Int { pairs.count }
    /// The field at a position from 0; any other position, such as ``endIndex``, traps.
    public subscript(position: Int) -> HeaderPair { pairs[position] }

    /// The value of the first field with a name, ignoring case; `nil` if no field has that name.
    public subscript(name: String) -> String? {
        let name = name.lowercased()
        return pairs.first { $0.name.lowercased() == name }?.value
    }

    /// Returns the values of all fields with a name, ignoring case, in order; empty if no field has that name.
    public func values(_ name: String) -> [String] {
        let name = name.lowercased()
        return pairs.filter { $0.name.lowercased() == name }.map(\.value)
    }

    /// Appends a field after all others, even if there is one with the same name. The field is not checked: a server
    /// sends an invalid one unchanged, so that the response is malformed, and a mock omits or changes it as described
    /// for ``HeaderPair/init(_:_:)``.
    public mutating func append(_ name: String, _ value: String) {
        pairs.append(HeaderPair(name, value))
    }

    /// Returns whether the fields with a name contain `token` in their comma-separated values, as in
    /// `Connection: close`.
    func has(token: String, in name: String) -> Bool {
        HeaderScanner.members(of: values(name)).contains { $0.lowercased() == token }
    }
}

/// A header or trailer field: a name with its original case, and a value. Pairs are equal if both texts are, including
/// case.
public struct HeaderPair: Hashable, Sendable, CustomStringConvertible {
    /// The name of the field, with its original case; sent unchanged by a server, even if it is not a token (RFC 9110
    /// §5.1), in which case a mock omits the field.
    public var name: String
    /// The value of the field: without surrounding spaces and tabs in a received request, and sent unchanged by a
    /// server. A mock replaces invalid bytes (RFC 9110 §5.5) by spaces, and removes surrounding spaces and tabs.
    public var value: String

    /// Creates a field from a name and a value, which are not checked.
    ///
    /// A server sends invalid ones unchanged, so that the response is malformed. A mock omits a field whose name is not
    /// a token (RFC 9110 §5.6.2), replaces invalid bytes of a value (RFC 9110 §5.5) by spaces, and removes surrounding
    /// spaces and tabs.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// The field as `name: value`.
    public var description: String { "\(name): \(value)" }
}
