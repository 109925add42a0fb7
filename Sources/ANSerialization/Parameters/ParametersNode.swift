// SPDX-License-Identifier: MIT

/// A node of the tree that is built while values encode themselves.
final class ParametersNode {
    private var content = Content.empty

    private enum Content {
        case empty
        case value(Parameters)
        case dictionary(Members)
        case array([ParametersNode])
    }

    func become(_ value: Parameters) {
        content = .value(value)
    }

    /// Begins a dictionary, or continues the one that there is.
    func becomeDictionary() {
        if case .dictionary = content { return }
        content = .dictionary(Members())
    }

    /// Begins an array, or continues the one that there is.
    func becomeArray() {
        if case .array = content { return }
        content = .array([])
    }

    /// Adds a member, which replaces one with the same name.
    func add(_ node: ParametersNode, named name: String) {
        guard case .dictionary(var members) = content else { return }
        content = .empty
        members.set(node, named: name)
        content = .dictionary(members)
    }

    /// Returns the member of a dictionary with a name; `nil` if it is missing.
    func member(named name: String) -> ParametersNode? {
        guard case .dictionary(let members) = content else { return nil }
        return members.position(of: name).map { members.nodes[$0].node }
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
    /// - Parameters:
    ///   - depth: The depth of the node.
    ///   - hasDataNames: Whether the names of a dictionary are data, not coding keys.
    /// - Throws: ``SerializationError/parameters(_:)`` if the tree is too deep.
    func parameters(depth: Int, hasDataNames: Bool = false) throws(SerializationError) -> Parameters {
        guard depth <= Parameters.maximumDepth else {
            throw .parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
        switch content {
        case .empty: return [:]
        case .value(let value): return value
        case .dictionary(let members):
            var entries: [Parameters.Entry] = []
            for (name, node) in members.nodes {
                var entry = Parameters.Entry(name, try node.parameters(depth: depth + 1))
                entry.isData = hasDataNames
                entries.append(entry)
            }
            return .dictionary(entries)
        case .array(let nodes):
            var elements: [Parameters] = []
            for node in nodes { elements.append(try node.parameters(depth: depth + 1)) }
            return .array(elements)
        }
    }

    /// The members of a dictionary in order, with different names.
    private struct Members {
        private(set) var nodes: [(name: String, node: ParametersNode)] = []
        /// The positions of the names; only of many, because a few are found faster without them.
        private var positions: [String: Int] = [:]
        private static let few = 16

        func position(of name: String) -> Int? {
            nodes.count > Self.few ? positions[name] : nodes.firstIndex { $0.name == name }
        }

        mutating func set(_ node: ParametersNode, named name: String) {
            if let position = position(of: name) {
                nodes[position].node = node
                return
            }
            nodes.append((name, node))
            if nodes.count > Self.few + 1 {
                positions[name] = nodes.count - 1
            } else if nodes.count > Self.few {
                for (position, member) in nodes.enumerated() { positions[member.name] = position }
            }
        }
    }
}
