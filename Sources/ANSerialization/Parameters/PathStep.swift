// SPDX-License-Identifier: MIT

/// A component of a path from a value to a nested value.
enum PathStep: Hashable, Sendable {
    case name(String)
    case index(Int)

    init(_ key: some CodingKey) {
        self = key.intValue.map(PathStep.index) ?? .name(key.stringValue)
    }
}

extension [PathStep] {
    /// The path in Swift syntax, such as `users[3].name`.
    var pathDescription: String {
        var text = ""
        for step in self {
            switch step {
            case .name(let name): text += text.isEmpty ? name : "." + name
            case .index(let index): text += "[\(index)]"
            }
        }
        return text
    }
}
