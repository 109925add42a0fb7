// SPDX-License-Identifier: MIT

/// A place in the tree that is filled while values encode themselves.
final class ParametersNode {
    private var content = Content.empty

    private enum Content {
        case empty
        case value(Parameters)
        case dictionary([(String, ParametersNode)])
        case array([ParametersNode])
    }

    func become(_ value: Parameters) {
        content = .value(value)
    }

    func becomeDictionary() {
        if case .empty = content { content = .dictionary([]) }
    }

    func becomeArray() {
        if case .empty = content { content = .array([]) }
    }

    func add(_ node: ParametersNode, named name: String) {
        guard case .dictionary(var entries) = content else { return }
        content = .empty
        entries.append((name, node))
        content = .dictionary(entries)
    }

    func add(_ node: ParametersNode) {
        guard case .array(var elements) = content else { return }
        content = .empty
        elements.append(node)
        content = .array(elements)
    }

    var count: Int {
        if case .array(let elements) = content { elements.count } else { 0 }
    }

    /// The tree below this place.
    ///
    /// A value that encoded nothing is an empty dictionary, as in `JSONEncoder`.
    var parameters: Parameters {
        switch content {
        case .empty: [:]
        case .value(let value): value
        case .dictionary(let entries): .dictionary(entries.map { Parameters.Entry($0.0, $0.1.parameters) })
        case .array(let elements): .array(elements.map(\.parameters))
        }
    }
}
