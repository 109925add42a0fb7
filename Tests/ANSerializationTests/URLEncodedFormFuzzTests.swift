// SPDX-License-Identifier: MIT

import ANSerialization
import AsyncNetworkingTesting
import FoundationEssentials
import TestSupport
import Testing

/// Random parameters are encoded, decoded by an independent parser, and compared.
@Suite struct URLEncodedFormFuzzTests {
    private static let seeds = 1...UInt64(rounds(40, few: 8))

    @Test(arguments: seeds)
    func `encoded parameters are decoded to the same pairs`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            let encoder = Self.encoder(using: &random)
            let parameters = Self.dictionary(depth: 3, using: &random)
            let text = try encoder.encode(parameters)
            let expected = try encoder.pairs(parameters).map { Pair(name: $0.name, value: $0.value) }
            let isPlus = encoder.encodesSpacesAsPlus
            #expect(Pair.decode(text, plusIsSpace: isPlus) == expected, "\(text)")
            #expect(text.utf8.allSatisfy { 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }, "\(text)")
            let base = try #require(URL(string: "http://h/p?x=1#f"))
            let url = try encoder.append(parameters, to: base)
            #expect(url.absoluteString == (text.isEmpty ? "http://h/p?x=1#f" : "http://h/p?x=1&\(text)#f"))
        }
    }

    @Test(arguments: seeds)
    func `the tree can be restored from names and indices`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let encoder = URLEncodedFormEncoder().with {
            $0.arrays = .indexed
            $0.sortsNames = false
        }
        for _ in 0..<50 {
            let tree = Self.tree(depth: 3, using: &random)
            let pairs = Pair.decode(try encoder.encode(tree), plusIsSpace: false)
            #expect(Pair.tree(of: pairs) == tree)
        }
    }

    private static func encoder(using random: inout SplitMix64) -> URLEncodedFormEncoder {
        URLEncodedFormEncoder().with {
            $0.arrays = [.brackets, .bare, .indexed].randomElement(using: &random) ?? .brackets
            $0.usesBooleanWords = Bool.random(using: &random)
            $0.dates =
                [.description, .deferred, .seconds, .milliseconds, .iso8601].randomElement(using: &random)
                ?? .description
            $0.data = Bool.random(using: &random) ? .base64 : .deferred
            $0.keys = [.asIs, .snakeCase, .kebabCase].randomElement(using: &random) ?? .asIs
            $0.keyPaths = Bool.random(using: &random) ? .brackets : .dots
            $0.nulls = [.dropKey, .text(""), .bareKey, .text("null")].randomElement(using: &random) ?? .bareKey
            $0.encodesSpacesAsPlus = Bool.random(using: &random)
            $0.sortsNames = Bool.random(using: &random)
            $0.allowedCharacters = [.standard, .unreserved, .query].randomElement(using: &random) ?? .standard
        }
    }

    /// Returns text with characters that are critical for parsers.
    private static func text(_ alphabet: String, using random: inout SplitMix64) -> String {
        var text = ""
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            if let scalar = alphabet.unicodeScalars.randomElement(using: &random) { text.unicodeScalars.append(scalar) }
        }
        return text
    }

    private static let hostile = "aZ09 &=+%#?/[].\"<>\\^`{|}~\r\n\t\u{0}\u{7F}éß漢👴🏿\u{301}\u{202E}"

    private static func dictionary(depth: Int, using random: inout SplitMix64) -> Parameters {
        .dictionary(
            (0..<Int.random(in: 0...5, using: &random)).map { _ in
                .init(text(hostile, using: &random), value(depth: depth - 1, using: &random))
            })
    }

    private static func value(depth: Int, using random: inout SplitMix64) -> Parameters {
        switch Int.random(in: depth > 0 ? 0...10 : 3...10, using: &random) {
        case 0: dictionary(depth: depth, using: &random)
        case 1: .array((0..<Int.random(in: 0...3, using: &random)).map { _ in value(depth: depth - 1, using: &random) })
        case 2: .set((0..<Int.random(in: 0...3, using: &random)).map { _ in value(depth: depth - 1, using: &random) })
        case 3: .integer(.random(in: .min ... .max, using: &random))
        case 4: .unsigned(.random(in: .min ... .max, using: &random))
        case 5: .double(.random(in: -1e20...1e20, using: &random))
        case 6: .bool(.random(using: &random))
        case 7: .date(Date(timeIntervalSince1970: .random(in: -6e10...2e11, using: &random)))
        case 8: .data(Data(text(hostile, using: &random).utf8))
        case 9: .null
        default: .string(text(hostile, using: &random))
        }
    }

    /// Returns a tree that can be restored: without empty containers, with simple unique names, and with strings as
    /// values.
    private static func tree(depth: Int, using random: inout SplitMix64) -> Parameters {
        .dictionary(
            (0..<Int.random(in: 1...4, using: &random)).map { index in
                .init("k\(index)" + text("aB9 é漢&=%+", using: &random), leaf(depth: depth - 1, using: &random))
            })
    }

    private static func leaf(depth: Int, using random: inout SplitMix64) -> Parameters {
        switch Int.random(in: depth > 0 ? 0...4 : 2...4, using: &random) {
        case 0: tree(depth: depth, using: &random)
        case 1:
            .array((0..<Int.random(in: 1...3, using: &random)).map { _ in leaf(depth: depth - 1, using: &random) })
        case 2: .null
        default: .string(text(hostile, using: &random))
        }
    }
}

/// A name-value pair decoded from a form, as by a server.
private struct Pair: Equatable {
    var name: String
    var value: String?

    /// Compared by UTF-8 bytes, because equal strings may have different ones.
    static func == (left: Pair, right: Pair) -> Bool {
        left.name.utf8.elementsEqual(right.name.utf8)
            && left.value.map { Array($0.utf8) } == right.value.map { Array($0.utf8) }
    }

    static func decode(_ text: String, plusIsSpace: Bool) -> [Pair] {
        guard !text.isEmpty else { return [] }
        return text.split(separator: "&", omittingEmptySubsequences: false).map { pair in
            let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return Pair(
                name: decode(halves[0], plusIsSpace), value: halves.count > 1 ? decode(halves[1], plusIsSpace) : nil)
        }
    }

    private static func decode(_ text: Substring, _ plusIsSpace: Bool) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = UInt8(String(rest.prefix(2)) ?? "", radix: 16) {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") && plusIsSpace ? UInt8(ascii: " ") : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the tree described by names such as `a[b][0]`.
    static func tree(of pairs: [Pair]) -> Parameters {
        var root: Parameters = [:]
        for pair in pairs {
            let pieces = pair.name.split(separator: "[").map { $0.hasSuffix("]") ? String($0.dropLast()) : String($0) }
            insert(pair.value.map { .string($0) } ?? .null, at: pieces[...], in: &root)
        }
        return root
    }

    private static func insert(_ value: Parameters, at path: ArraySlice<String>, in tree: inout Parameters) {
        guard let step = path.first else {
            tree = value
            return
        }
        if let index = Int(step) {
            var elements: [Parameters] = if case .array(let existing) = tree { existing } else { [] }
            if index == elements.count { elements.append(.null) }
            insert(value, at: path.dropFirst(), in: &elements[index])
            tree = .array(elements)
        } else {
            var entries: [Parameters.Entry] = if case .dictionary(let existing) = tree { existing } else { [] }
            let index = entries.firstIndex { $0.name.utf8.elementsEqual(step.utf8) } ?? entries.count
            if index == entries.count { entries.append(.init(step, .null)) }
            insert(value, at: path.dropFirst(), in: &entries[index].value)
            tree = .dictionary(entries)
        }
    }
}
