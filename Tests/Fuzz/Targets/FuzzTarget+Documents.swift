// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import AsyncNetworkingXML
import Foundation
import HTTPTypes

extension FuzzTarget {
    /// Parsers of complete documents and texts.
    static let documents: [FuzzTarget] = [
        FuzzTarget("json", checkJSON),
        FuzzTarget("json5", checkJSON5),
        FuzzTarget("property-lists", checkPropertyLists),
        FuzzTarget("xml", checkXML),
        FuzzTarget("charsets", maximumSize: 64, checkCharsets),
        FuzzTarget("urls", maximumSize: 128, checkURLs),
        FuzzTarget("forms", maximumSize: 256, checkForms),
    ]

    private static let head = ResponseHead(status: .ok, url: URL(filePath: "/"))

    // MARK: JSON

    /// A value that is written and read again is the same, and a decoder accepts what is accepted, and only that if it
    /// reads everything. The oracle is Foundation.
    private static func checkJSON(_ input: [UInt8]) throws {
        let data = Data(input)
        let serializer = JSONResponseSerializer(options: .allowsFragments, emptyResponses: .never)
        let decoder = JSONDecoder()
        guard let value = try? serializer.serialize(head, data) else {
            try require(decoder.formatError(in: data) != nil, "the error is located")
            try require((try? decoder.value(Everything.self, from: data)) == nil, "the decoder refuses it, too")
            return
        }
        try require(decoder.formatError(in: data) == nil, "there is no error")
        let again = try serializer.serialize(head, Data(value.description.utf8))
        try requireEqual(again.withoutIntegers, value.withoutIntegers, "written again")
        _ = try decoder.decode(Anything.self, from: data)
    }

    /// Checks that JSON text has the same value if it is read as JSON5, and that the value of JSON5 can be written as JSON.
    private static func checkJSON5(_ input: [UInt8]) throws {
        let strict = JSONResponseSerializer(options: .allowsFragments, emptyResponses: .never)
        let lenient = JSONResponseSerializer(options: [.allowsFragments, .allowsJSON5], emptyResponses: .never)
        let value = try? lenient.serialize(head, Data(input))
        if let strict = try? strict.serialize(head, Data(input)) {
            try requireEqual(value, strict, "the value as JSON")
        }
        guard let value, value.isFinite else { return }
        let again = try strict.serialize(head, Data(value.description.utf8))
        try requireEqual(again.withoutIntegers, value.withoutIntegers, "written again")
    }

    private struct Anything: Decodable {
        init(from decoder: any Decoder) {}
    }

    /// A value of any type that reads all names and values.
    private struct Everything: Decodable {
        init(from decoder: any Decoder) throws {
            if let members = try? decoder.container(keyedBy: Name.self) {
                for name in members.allKeys { _ = try members.decode(Everything.self, forKey: name) }
            } else if var elements = try? decoder.unkeyedContainer() {
                while !elements.isAtEnd { _ = try elements.decode(Everything.self) }
            } else {
                let value = try decoder.singleValueContainer()
                guard !value.decodeNil(), (try? value.decode(Bool.self)) == nil, (try? value.decode(String.self)) == nil
                else { return }
                _ = try value.decode(Double.self)
            }
        }

        private struct Name: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }

            init?(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }
    }

    // MARK: Property lists and XML

    /// What the guard lets pass is decoded without a crash.
    private static func checkPropertyLists(_ input: [UInt8]) throws {
        let data = Data(input)
        guard let checked = try? PropertyListGuard.checked(data) else { return }
        try requireEqual(try PropertyListGuard.checked(checked), checked, "checked again")
        _ = PropertyListDecoder().formatError(in: checked)
        _ = try? PropertyListResponseSerializer(emptyResponses: .never).serialize(head, data)
    }

    /// An inspected document is the same when it is inspected again, and Foundation parses it without a crash.
    private static func checkXML(_ input: [UInt8]) throws {
        guard let content = try? XMLContent(Data(input)) else { return }
        try requireEqual(try XMLContent(content.data).data, content.data, "inspected again")
        let outcome = XMLExercise.run(content, options: input.count)
        try require(!outcome.isWellFormed || outcome.hasRoot, "a well-formed document has an element")
        guard let metalink = try? Metalink(content) else { return }
        try require(outcome.isWellFormed && !metalink.files.isEmpty, "a Metalink document is well-formed")
        for file in metalink.files {
            let parts = file.name.split(separator: "/", omittingEmptySubsequences: false)
            try require(!parts.contains { ["", ".", ".."].contains($0) }, "a name is a relative path")
            try require(file.urls.allSatisfy { $0.scheme?.lowercased().hasPrefix("http") == true }, "an http URL")
        }
    }

    // MARK: Text

    /// The first byte chooses the encoding. Decoded text is valid, and that of UTF-8 is the input.
    private static func checkCharsets(_ input: [UInt8]) throws {
        let charsets = [
            "utf-8", "utf-16", "utf-16le", "utf-32", "windows-1252", "iso-8859-8-i", "koi8-u", "windows-1258",
            "gb18030",
            "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "macintosh", "us-ascii",
        ]
        guard let first = input.first, let encoding = TextEncoding(charset: charsets[Int(first) % charsets.count])
        else {
            return
        }
        let bytes = input.dropFirst()
        let text = encoding.decode(Data(bytes))
        if encoding == .utf8 {
            let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
            let content = bytes.starts(with: mark) ? bytes.dropFirst(3) : bytes
            let isValid = String(validating: bytes, as: UTF8.self) != nil
            try requireEqual(text.map { Array($0.utf8) }, isValid ? Array(content) : nil, "the bytes of the text")
        }
        _ = try? XMLText.utf8(Data(bytes), charset: encoding.name)
    }

    /// A string resolves to a URL of HTTP, which resolves to itself; a path below the base stays at its host.
    private static func checkURLs(_ input: [UInt8]) throws {
        let text = String(decoding: input, as: UTF8.self)
        for base in ["https://a.example/v1/x?y#z", "http://[::1]:8080"].map({ URL(string: $0) }) + [nil] {
            for mode in [URLResolver.Mode.reference, .appendingPath] {
                let resolver = URLResolver(base: base, mode: mode)
                guard let url = try? resolver.resolve(text) else { continue }
                try require(["http", "https"].contains(url.scheme?.lowercased()), "\(url) is one of HTTP")
                try require(url.host()?.isEmpty == false, "\(url) has a host")
                try require(url.absoluteString.utf8.allSatisfy { 0x21...0x7E ~= $0 }, "\(url) is ASCII")
                let again = try? URLResolver(base: nil).resolve(url.absoluteString)
                try requireEqual(again?.absoluteString, url.absoluteString, "the URL as text")
                let start = text.lowercased()
                guard mode == .appendingPath, let base, !start.hasPrefix("http://"), !start.hasPrefix("https://") else {
                    continue
                }
                try requireEqual(url.host(), base.host(), "the host of \(url)")
                try requireEqual(url.port, base.port, "the port of \(url)")
            }
        }
    }

    /// The pairs of an encoded form are those that were encoded. The input is JSON.
    private static func checkForms(_ input: [UInt8]) throws {
        let serializer = JSONResponseSerializer(emptyResponses: .never)
        guard let value = try? serializer.serialize(head, Data(input)) else { return }
        let parameters = Parameters(value)
        for spacesArePlus in [false, true] {
            let encoder = URLEncodedFormEncoder().with {
                $0.encodesSpacesAsPlus = spacesArePlus
                $0.arrays = .indexed
            }
            guard let text = try? encoder.encode(parameters) else { continue }
            let pairs = text.isEmpty ? [] : text.split(separator: "&", omittingEmptySubsequences: false)
            let decoded = pairs.map { pair in
                pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { part in
                    let text = spacesArePlus ? String(part).replacing("+", with: "%20") : String(part)
                    return text.removingPercentEncoding.map { Array($0.utf8) }
                }
            }
            let expected = try encoder.pairs(parameters).map { pair in
                [pair.name, pair.value].compactMap(\.self).map { Optional(Array($0.utf8)) }
            }
            try requireEqual(decoded, expected, "the pairs of \(text)")
        }
    }
}

extension JSONValue {
    /// Whether JSON can represent the value.
    fileprivate var isFinite: Bool {
        switch self {
        case .double(let number): number.isFinite
        case .array(let elements): elements.allSatisfy(\.isFinite)
        case .object(let members): members.values.allSatisfy(\.isFinite)
        case .null, .bool, .integer, .unsigned, .string: true
        }
    }

    /// The value with all numbers as doubles: `1e3` is written as `1000`, which is read as an integer.
    fileprivate var withoutIntegers: JSONValue {
        switch self {
        case .integer(let number): .double(Double(number))
        case .unsigned(let number): .double(Double(number))
        case .array(let elements): .array(elements.map(\.withoutIntegers))
        case .object(let members): .object(members.mapValues(\.withoutIntegers))
        case .null, .bool, .double, .string: self
        }
    }
}
