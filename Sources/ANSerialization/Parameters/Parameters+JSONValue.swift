// SPDX-License-Identifier: MIT

extension Parameters {
    /// Creates parameters from a JSON document; the members of its objects are sorted by name, because they have no
    /// order.
    public init(_ value: JSONValue) {
        switch value {
        case .null: self = .null
        case .bool(let bool): self = .bool(bool)
        case .integer(let integer): self = .integer(integer)
        case .unsigned(let integer): self = .unsigned(integer)
        case .double(let double): self = .double(double)
        case .string(let string): self = .string(string)
        case .array(let elements): self = .array(elements.map { Parameters($0) })
        case .object(let values): self.init(values.mapValues { Parameters($0) })
        }
    }
}
