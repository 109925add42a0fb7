// SPDX-License-Identifier: MIT

import FoundationEssentials

extension JSONParser {
    /// Returns the offset of the value at a path, or of the last value on the path that exists.
    static func offset(of path: [PathStep], in data: Data) -> Int {
        var parser = JSONParser(data)
        var offset = parser.position
        for step in path {
            guard let next = try? parser.enter(step) else { return offset }
            offset = next
        }
        return offset
    }

    /// Moves to the value that a step leads to and returns its offset; `nil` if there is no such value.
    ///
    /// An index also leads to a member of an object: dictionaries may have integer keys, and the coding paths of
    /// `JSONDecoder` do not distinguish them from indices.
    private mutating func enter(_ step: PathStep) throws(SerializationError) -> Int? {
        try skipWhitespace()
        let opening = try currentByte()
        position += 1
        switch (step, opening) {
        case (.index(let index), UInt8(ascii: "[")): return try enterArray(index)
        case (.index(let index), UInt8(ascii: "{")): return try enterObject(String(index))
        case (.name(let name), UInt8(ascii: "{")): return try enterObject(name)
        default: return nil
        }
    }

    private mutating func enterArray(_ index: Int) throws(SerializationError) -> Int? {
        guard index >= 0, try !take(UInt8(ascii: "]")) else { return nil }
        for _ in 0..<index {
            _ = try parseValue()
            guard try takeComma(before: UInt8(ascii: "]")) else { return nil }
        }
        try skipWhitespace()
        return position
    }

    private mutating func enterObject(_ wanted: String) throws(SerializationError) -> Int? {
        guard try !take(UInt8(ascii: "}")) else { return nil }
        repeat {
            if try parseName() == wanted {
                try skipWhitespace()
                return position
            }
            _ = try parseValue()
        } while try takeComma(before: UInt8(ascii: "}"))
        return nil
    }
}
