// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The members of HAR 1.2 that are required, and the types of all, as the specification describes them. Names with an
/// underscore are a program's own.
enum HARSchema {
    /// Returns what is wrong with an archive; empty for a valid one.
    static func problems(in data: Data) -> [String] {
        do {
            return check(try JSONDecoder().decode(Value.self, from: data), root, at: "")
        } catch {
            return ["\(error)"]
        }
    }

    indirect enum Value: Decodable {
        case null, bool, number(Double), string(String), array([Value]), object([String: Value])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let value = try? container.decode(Double.self) {
                self = .number(value)
            } else if let value = try? container.decode(String.self) {
                self = .string(value)
            } else if let value = try? container.decode([Value].self) {
                self = .array(value)
            } else if let value = try? container.decode([String: Value].self) {
                self = .object(value)
            } else {
                _ = try container.decode(Bool.self)
                self = .bool
            }
        }
    }

    private indirect enum Rule: Sendable {
        case string, date
        /// A number of milliseconds or bytes, or -1 if that is permitted.
        case number(orMissing: Bool)
        case integer
        case array(Rule)
        /// Required members, then optional ones.
        case object([String: Rule], [String: Rule] = [:])
    }

    private static let pair = Rule.object(["name": .string, "value": .string], ["comment": .string])
    private static let root = Rule.object(["log": log])
    private static let log = Rule.object(
        ["version": .string, "creator": .object(["name": .string, "version": .string]), "entries": .array(entry)])
    private static let entry = Rule.object(
        [
            "startedDateTime": .date, "time": .number(orMissing: false), "request": request, "response": response,
            "cache": .object([:]), "timings": timings,
        ], ["serverIPAddress": .string, "connection": .string, "comment": .string, "pageref": .string])
    private static let request = Rule.object(
        [
            "method": .string, "url": .string, "httpVersion": .string, "cookies": .array(pair), "headers": .array(pair),
            "queryString": .array(pair), "headersSize": .integer, "bodySize": .integer,
        ],
        ["postData": .object(["mimeType": .string, "params": .array(pair), "text": .string], ["comment": .string])])
    private static let response = Rule.object(
        [
            "status": .integer, "statusText": .string, "httpVersion": .string, "cookies": .array(pair),
            "headers": .array(pair), "redirectURL": .string, "headersSize": .integer, "bodySize": .integer,
            "content": .object(
                ["size": .integer, "mimeType": .string],
                ["compression": .integer, "text": .string, "encoding": .string, "comment": .string]),
        ])
    private static let timings = Rule.object(
        ["send": .number(orMissing: false), "wait": .number(orMissing: false), "receive": .number(orMissing: false)],
        [
            "blocked": .number(orMissing: true), "dns": .number(orMissing: true), "connect": .number(orMissing: true),
            "ssl": .number(orMissing: true),
        ])

    private static func check(_ value: Value, _ rule: Rule, at path: String) -> [String] {
        switch (value, rule) {
        case (.string, .string): return []
        case (.string(let text), .date):
            let form = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/
            return text.wholeMatch(of: form) == nil ? ["\(path) is not a date: \(text)"] : []
        case (.number(let number), .number(let orMissing)):
            return number >= 0 || (orMissing && number == -1) ? [] : ["\(path) is \(number)"]
        case (.number(let number), .integer):
            return number == number.rounded() && number >= -1 ? [] : ["\(path) is \(number)"]
        case (.array(let elements), .array(let rule)):
            return elements.enumerated().flatMap { check($1, rule, at: "\(path)[\($0)]") }
        case (.object(let members), .object(let required, let optional)):
            var problems = required.keys.filter { members[$0] == nil }.map { "\(path).\($0) is missing" }
            for (name, member) in members where !name.hasPrefix("_") {
                guard let rule = required[name] ?? optional[name] else {
                    problems.append("\(path).\(name) is unknown")
                    continue
                }
                problems += check(member, rule, at: "\(path).\(name)")
            }
            return problems.sorted()
        default: return ["\(path) has another type"]
        }
    }
}
