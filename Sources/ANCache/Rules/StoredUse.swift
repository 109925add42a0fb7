// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials
package import HTTPTypes

/// The use of one stored response for a request: which one, its age, and the part of it that answers the request.
package struct StoredUse: Hashable, Sendable {
    /// The index of the stored response.
    package let index: Int
    /// The age of the response.
    package let age: CacheTime
    /// Whether the response is stale, or is used because the server failed.
    package internal(set) var isStale: Bool
    /// The part of the response that answers the request.
    package private(set) var part = Part.whole

    /// A part of a stored response.
    package enum Part: Hashable, Sendable {
        /// The head and the body.
        case whole
        /// The head alone, for HEAD.
        case head
        /// A 304: the program has the representation already.
        case notModified
        /// A 206 with these bytes of the body.
        case range(Range<Int64>)
    }

    /// Creates a use of a whole response.
    init(index: Int, age: CacheTime, isStale: Bool) {
        self.index = index
        self.age = age
        self.isStale = isStale
    }

    /// Returns the use of a stored response that the server has just confirmed for a request.
    package static func validated(
        _ response: StoredResponse, for request: CacheRequest, at now: CacheTime
    ) -> StoredUse {
        var use = StoredUse(index: 0, age: response.age(at: now) ?? .zero, isStale: false)
        if request.method == .head { use.part = .head }
        return use
    }

    /// Returns the use with the part that a request asks for: its preconditions are evaluated in the order of RFC 9110
    /// §13.2.2, then its range.
    ///
    /// The result is `nil` if the server must answer: several ranges, or a range of a body that is not stored as it was
    /// sent.
    func presented(_ response: StoredResponse, to request: CacheRequest) -> StoredUse? {
        var use = self
        if response.status.code == 200, Self.isNotModified(response, for: request) {
            use.part = .notModified
            return use
        }
        if request.method == .head {
            use.part = .head
            return use
        }
        let ranges = request.headers[values: .range]
        guard !ranges.isEmpty, response.status.code == 200, Self.appliesRange(to: response, request) else { return use }
        guard ranges.count == 1, !response.isDecoded, !response.isReplaced, let range = ByteRange(ranges[0]),
            let positions = range.positions(in: response.bodyLength)
        else { return nil }
        use.part = .range(positions)
        return use
    }

    /// Evaluates `If-None-Match`, or else `If-Modified-Since` (RFC 9110 §13.1.2, §13.1.3; RFC 9111 §4.3.2).
    private static func isNotModified(_ response: StoredResponse, for request: CacheRequest) -> Bool {
        let tags = request.headers[values: .ifNoneMatch]
        if !tags.isEmpty {
            if tags.contains(where: { $0.trimmingBlanks == "*" }) { return true }
            guard let own = response.rules.entityTag else { return false }
            return EntityTag.list(tags).contains { $0.matchesWeakly(own) }
        }
        let dates = request.headers[values: .ifModifiedSince]
        guard dates.count == 1, let since = CacheTime(httpDate: dates[0], now: response.responseTime) else {
            return false
        }
        return response.rules.lastModified ?? response.rules.date <= since
    }

    /// Evaluates `If-Range` by the strong comparison (RFC 9110 §13.1.5).
    private static func appliesRange(to response: StoredResponse, _ request: CacheRequest) -> Bool {
        guard let condition = request.headers.first(.ifRange) else { return true }
        if let tag = EntityTag(condition) { return response.rules.entityTag?.matchesStrongly(tag) ?? false }
        // A modification date is strong if it precedes the response by a second at least (RFC 9110 §8.8.2.2).
        guard let text = response.rules.lastModifiedText, let modified = response.rules.lastModified,
            response.rules.date - modified >= CacheTime(seconds: 1)
        else { return false }
        return condition.trimmingBlanks == text.trimmingBlanks
    }
}

extension StoredResponse {
    /// Returns the head that answers a request.
    ///
    /// - Parameters:
    ///   - use: The use of this response.
    ///   - isValidated: Whether the server has just confirmed the response. If not, `Age` becomes the response's age
    ///     (RFC 9111 §4).
    ///   - url: The URL of the request.
    package func head(for use: StoredUse, isValidated: Bool, at url: URL) -> ResponseHead {
        var head = ResponseHead(status: status, headers: headers, version: version, url: url)
        if !isValidated { head.headers[.age] = String(max(0, use.age.seconds)) }
        switch use.part {
        case .whole, .head: break
        case .notModified:
            head.status = .notModified
            head.headers[.contentLength] = nil
        case .range(let positions):
            head.status = .partialContent
            head.headers.removeContentDigests()
            head.headers[.contentLength] = String(positions.count)
            head.headers[.contentRange] = "bytes \(positions.lowerBound)-\(positions.upperBound - 1)/\(bodyLength)"
        }
        return head
    }

    /// Returns the trailer fields that follow the part of the body that answers a request.
    package func trailers(for use: StoredUse) -> HTTPFields {
        var trailers = trailers
        switch use.part {
        case .whole: break
        case .head, .notModified: trailers = [:]
        case .range: trailers.removeContentDigests()
        }
        return trailers
    }
}

extension HTTPFields {
    /// Removes the digests of the whole content, which are not those of a part (RFC 9530 §2).
    fileprivate mutating func removeContentDigests() {
        removeAll { $0.name == .contentDigest || $0.name.canonicalName == "content-md5" }
    }
}

/// A requested byte range: a `Range` field with one member (RFC 9110 §14.1.2).
package enum ByteRange: Hashable, Sendable {
    /// From a position, up to and including another one or to the end.
    case from(Int64, through: Int64?)
    /// The last bytes.
    case suffix(Int64)

    /// Parses `bytes=0-499`, `bytes=500-` or `bytes=-500`; `nil` for several ranges and for any other text.
    package init?(_ text: String) {
        let parts = text.split(at: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].trimmingBlanks.lowercased() == "bytes" else { return nil }
        let ends = parts[1].trimmingBlanks.split(at: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        switch (Int64(digits: ends[0]), Int64(digits: ends[1])) {
        case (let first?, nil) where ends[1].isEmpty: self = .from(first, through: nil)
        case (let first?, let last?) where first <= last: self = .from(first, through: last)
        case (nil, let count?) where ends[0].isEmpty: self = .suffix(count)
        default: return nil
        }
    }

    /// Returns the positions of the bytes in a representation of `length` bytes; `nil` if the range is not satisfiable.
    package func positions(in length: Int64) -> Range<Int64>? {
        switch self {
        case .from(let first, let last):
            guard first < length else { return nil }
            return first..<min(last.map { $0 < .max ? $0 + 1 : .max } ?? length, length)
        case .suffix(let count):
            guard count > 0, length > 0 else { return nil }
            return max(0, length - count)..<length
        }
    }
}
