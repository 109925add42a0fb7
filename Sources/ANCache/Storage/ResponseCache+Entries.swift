// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials

extension ResponseCache {
    /// Removes all stored responses to requests for a URL, in memory and in the directory, before returning. It may
    /// read and delete files, and blocks the calling thread while it does so.
    ///
    /// Responses to requests for the URL that are in flight are not stored either. Responses that other processes have
    /// stored in the directory, and that this process has not noticed yet, remain; see ``usage``.
    ///
    /// - Parameter url: The URL with its query. User information, fragment, a default port, and the case of scheme and
    ///   host are ignored. Without stored responses, nothing happens.
    public func remove(_ url: URL) {
        removeEntries(target: CacheKey.target(url))
    }

    /// Removes the entries of a normalized target. The responses to requests that are in flight are not stored.
    package func removeEntries(target: String) {
        let key = CacheKey(target: target)
        index.withLock { $0.invalidate(key) }
        removeEntries(key) { $0.target == target }
    }

    /// Removes all stored responses, including those that other processes have stored in the directory, before
    /// returning. It scans the directory and deletes files, and blocks the calling thread while it does so.
    ///
    /// Responses to requests that are in flight in this process are not stored either. The directory itself remains.
    public func removeAll() {
        index.withLock { $0.invalidate(nil) }
        scan()
        for key in Set(index.withLock { $0.all.map(\.key) }) { remove(key) { _ in true } }
    }

    /// The numbers of stored responses and bytes that this process knows of.
    ///
    /// Responses that other processes store in the directory are noticed from time to time, when this process stores
    /// some, and by ``removeAll()``. No file is read.
    public var usage: Usage {
        index.withLock { Usage(entries: $0.count, memoryBytes: $0.memoryBytes, diskBytes: $0.diskBytes) }
    }

    /// The numbers of stored responses and bytes of a ``ResponseCache``.
    public struct Usage: Hashable, Sendable {
        /// The number of stored responses; one that is both in memory and in files counts once.
        public let entries: Int
        /// The estimated number of bytes in memory, for the heads and for bodies that are kept there.
        public let memoryBytes: Int
        /// The number of bytes in files, including bodies that are hard links to files of the program; 0 for a cache in
        /// memory only.
        public let diskBytes: Int64
    }

    /// Returns the stored responses that this process knows of, in any order, without their bodies; also those that
    /// have expired, and several for one URL if they vary by header fields or credentials.
    ///
    /// Those in the directory are read, off the caller's actor; files that are missing or damaged are omitted. Being
    /// listed does not count as a use.
    @concurrent public func entries() async -> [Entry] {
        let slots = index.withLock { Array($0.all.map(\.slot)) }
        return slots.compactMap { slot in
            (slot.entry ?? slot.name.flatMap { try? disk?.read($0) }).map { Entry($0.response) }
        }
    }

    /// A stored response, as returned by ``entries()``: its URL, head, size and times, without its body.
    public struct Entry: Sendable {
        /// The URL of the request, normalized: with scheme and host in lower case and at least `/` as its path, without
        /// a default port, user information and fragment.
        public let url: URL
        /// The status and header fields of the stored response, without fields that are limited to one connection (RFC
        /// 9111 §3.1), and updated by later validations (§4.3.4).
        public let head: ResponseHead
        /// The number of bytes of the body as stored: decompressed, unless the request disabled that.
        public let bodySize: Int64
        /// The time at which the response was received or last validated, by this computer's clock.
        public let date: Date
        /// The time until which the response can be used without validation, possibly in the past; `nil` if it must
        /// always be validated: because of `no-cache`, because a later request may have changed the resource (RFC 9111
        /// §4.4), or because nothing determines such a time.
        ///
        /// It results from the first of these that the response has: `max-age`, `Expires`, or a heuristic, a tenth of
        /// the time between `Last-Modified` and `Date`, at most a day (RFC 9111 §4.2.1, §4.2.2). The heuristic applies
        /// to heuristically cacheable statuses (RFC 9110 §15.1) and with `public`. The age that the response had when
        /// it was received is subtracted.
        public let expirationDate: Date?

        init(_ response: StoredResponse) {
            let url = URL(string: response.target) ?? URL(filePath: "/")
            self.url = url
            head = ResponseHead(
                status: response.status, headers: response.headers, version: response.version, url: url)
            bodySize = response.bodyLength
            date = response.responseTime.date
            expirationDate = response.expiration?.date
        }
    }
}

extension CacheTime {
    /// The point in time as a date.
    var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1_000) }
}

extension StoredResponse {
    /// The time at which the response becomes stale; `nil` if it always requires validation.
    var expiration: CacheTime? {
        guard !isInvalidated, !rules.noCache, let lifetime = rules.lifetime else { return nil }
        return responseTime + lifetime - rules.initialAge
    }
}
