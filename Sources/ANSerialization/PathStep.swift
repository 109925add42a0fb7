// SPDX-License-Identifier: MIT

/// One step from a value to a value within it.
enum PathStep: Hashable, Sendable {
    case name(String)
    case index(Int)

    init(_ key: some CodingKey) {
        self = key.intValue.map(PathStep.index) ?? .name(key.stringValue)
    }
}

extension [PathStep] {
    /// The path as it is written in Swift: `users[3].name`.
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
