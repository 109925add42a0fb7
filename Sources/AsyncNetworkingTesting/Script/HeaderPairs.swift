// SPDX-License-Identifier: MIT

/// Header fields as they stand on the wire: in order, with the case as sent, names repeated where they are repeated.
///
/// Written as a dictionary literal, which keeps order and repeats: `["Set-Cookie": "a=1", "Set-Cookie": "b=2"]`.
public struct HeaderPairs: Hashable, Sendable, RandomAccessCollection, ExpressibleByDictionaryLiteral {
    private var pairs: [HeaderPair]

    /// Creates fields from pairs.
    public init(_ pairs: [HeaderPair] = []) {
        self.pairs = pairs
    }

    /// Creates fields from a literal, in its order.
    public init(dictionaryLiteral elements: (String, String)...) {
        pairs = elements.map(HeaderPair.init)
    }

    /// 0.
    public var startIndex: Int { 0 }
    /// The number of fields.
    public var endIndex: Int { pairs.count }
    /// The field at a position.
    public subscript(position: Int) -> HeaderPair { pairs[position] }

    /// The value of the first field with this name, whatever its case.
    public subscript(name: String) -> String? {
        let name = name.lowercased()
        return pairs.first { $0.name.lowercased() == name }?.value
    }

    /// The values of all fields with this name, whatever its case, in order.
    public func values(_ name: String) -> [String] {
        let name = name.lowercased()
        return pairs.filter { $0.name.lowercased() == name }.map(\.value)
    }

    /// Adds a field at the end.
    public mutating func append(_ name: String, _ value: String) {
        pairs.append(HeaderPair(name, value))
    }

    /// Whether the list of tokens in the fields with this name has `token`, as in `Connection: close`.
    func has(token: String, in name: String) -> Bool {
        values(name).contains { value in
            value.split(separator: ",").contains { $0.trimmingBlanks.lowercased() == token }
        }
    }
}

/// One header field: a name in the case as sent, and a value.
public struct HeaderPair: Hashable, Sendable, CustomStringConvertible {
    /// The name.
    public var name: String
    /// The value, without blanks around it.
    public var value: String

    /// Creates a field.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// `name: value`.
    public var description: String { "\(name): \(value)" }
}

extension StringProtocol {
    /// The text without spaces and tabs around it.
    var trimmingBlanks: SubSequence {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        guard let last = lastIndex(where: { !isBlank($0) }) else { return self[endIndex...] }
        return self[...last].drop(while: isBlank)
    }
}
