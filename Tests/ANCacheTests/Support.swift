// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

/// The time of the exchanges in tests: Sun, 06 Nov 1994 08:49:37 GMT.
let start = CacheTime(seconds: 784_111_777)
let page = "http://a.example/x"

/// Returns the time some seconds after ``start``.
func after(_ seconds: Int64) -> CacheTime { start + CacheTime(seconds: seconds) }

/// Returns the HTTP date some seconds after ``start``, for differences that stay within its day.
func date(_ seconds: Int64) -> String {
    let time = 8 * 3_600 + 49 * 60 + 37 + seconds
    let day = 6 + (time >= 0 ? time / 86_400 : (time - 86_399) / 86_400)
    let rest = ((time % 86_400) + 86_400) % 86_400
    func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + String(number) }
    return "Sun, \(two(day)) Nov 1994 \(two(rest / 3_600)):\(two(rest / 60 % 60)):\(two(rest % 60)) GMT"
}

/// Creates header fields from `Name: value` lines.
func fields(_ lines: [String]) -> HTTPFields {
    var fields = HTTPFields()
    for line in lines {
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, let name = HTTPField.Name(String(parts[0])) else { continue }
        fields.append(HTTPField(name: name, value: String(parts[1].drop { $0 == " " })))
    }
    return fields
}

extension CacheRequest {
    /// Creates a request from `Name: value` lines.
    static func get(
        _ lines: String..., method: HTTPRequest.Method = .get, mode: Mode = .standard, hasBody: Bool = false,
        decodes: Bool = true, cookies: Bool = false, owner: CacheOwner = .none, target: String = page
    ) -> CacheRequest {
        CacheRequest(
            target: target, method: method, headers: fields(lines), mode: mode, hasBody: hasBody,
            decodesContent: decodes, mayAddCookies: cookies, owner: owner)
    }
}

extension ResponseHead {
    /// Creates a head from `Name: value` lines.
    init(_ status: Int, _ lines: [String]) {
        self.init(
            status: HTTPResponse.Status(code: status), headers: fields(lines), url: URL(filePath: "/"))
    }

    /// Creates a head from `Name: value` lines.
    static func of(_ status: Int, _ lines: String...) -> ResponseHead { ResponseHead(status, lines) }

    /// `Name: value` for each field in order.
    var lines: [String] { headers.map { "\($0.name.rawName): \($0.value)" } }
}

extension StoredResponse {
    /// Stores a response with `Name: value` lines, received at ``start``.
    static func of(
        _ lines: String..., status: Int = 200, to request: CacheRequest = .get(), at time: CacheTime = start,
        delay: Int64 = 0, length: Int64 = 10, owner: UInt64 = 0
    ) -> StoredResponse {
        StoredResponse(
            ResponseHead(status, lines), trailers: [:], bodyLength: length, to: request,
            requestTime: time - CacheTime(seconds: delay), responseTime: time, owner: owner)
    }
}

extension CacheDecision {
    /// The name of the decision, for tables.
    var name: String {
        switch self {
        case .use(let use): use.isStale ? "stale" : "fresh"
        case .useWhileValidating: "background"
        case .validate: "validate"
        case .forward: "forward"
        case .refuse: "refuse"
        }
    }

    /// The use without a validation that precedes it.
    var use: StoredUse? {
        switch self {
        case .use(let use), .useWhileValidating(let use, _): use
        case .validate, .forward, .refuse: nil
        }
    }

    /// The conditions as `Name: value` lines; `nil` without validation.
    var conditions: [String]? {
        switch self {
        case .validate(let fields, _), .useWhileValidating(_, let fields):
            fields.map { "\($0.name.rawName): \($0.value)" }
        case .use, .forward, .refuse: nil
        }
    }
}

/// Returns the decision about a request, some seconds after ``start``.
func decide(_ request: CacheRequest, _ stored: StoredResponse..., at seconds: Int64) -> CacheDecision {
    CacheDecision(for: request, stored: stored, now: after(seconds))
}

/// The URL of ``page``.
let url = URL(string: page) ?? URL(filePath: "/")
