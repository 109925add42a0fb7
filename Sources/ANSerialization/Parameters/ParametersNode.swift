// SPDX-License-Identifier: MIT

/// A node of the tree that is built while values encode themselves.
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

    /// Returns the tree below this node, which is at a depth in the complete tree.
    ///
    /// A node without a value becomes an empty dictionary, as in `JSONEncoder`.
    ///
    /// - Throws: ``SerializationError/parameters(_:)`` if the tree is too deep.
    func parameters(depth: Int) throws(SerializationError) -> Parameters {
        guard depth <= Parameters.maximumDepth else {
            throw .parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
        switch content {
        case .empty: return [:]
        case .value(let value): return value
        case .dictionary(let nodes):
            var entries: [Parameters.Entry] = []
            for (name, node) in nodes { entries.append(.init(name, try node.parameters(depth: depth + 1))) }
            return .dictionary(entries)
        case .array(let nodes):
            var elements: [Parameters] = []
            for node in nodes { elements.append(try node.parameters(depth: depth + 1)) }
            return .array(elements)
        }
    }
}
