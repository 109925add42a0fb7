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

    /// The tree below this place, which is so deep in the whole.
    ///
    /// A value that encoded nothing is an empty dictionary, as in `JSONEncoder`.
    ///
    /// - Throws: ``SerializationError/parameters(_:)`` for a tree that is too deep.
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
