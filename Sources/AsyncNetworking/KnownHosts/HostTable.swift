// SPDX-License-Identifier: MIT

import ANHTTP
package import FoundationEssentials

/// What a server or the program has said about a host, until a time.
package protocol HostEntry: Hashable, Sendable {
    /// Identifies the entries that replace each other.
    associatedtype Key: Hashable & Sendable, Comparable
    /// What the session has found out about an entry.
    associatedtype Experience: Sendable

    var key: Key { get }
    /// The name in lower case, without a trailing dot and without brackets around an IPv6 address.
    var host: String { get }
    var expiry: Date { get }

    /// What is known about a new entry.
    static var noExperience: Experience { get }
    /// Whether what is known about another entry with the same key holds for this one.
    func isSameService(as other: Self) -> Bool

    // Files of curl.

    /// The first line of a file.
    static var fileTitle: String { get }
    /// Whether the limit on the number of entries applies to those of files.
    static var limitsFiles: Bool { get }
    /// Parses a line of a file; `nil` for a comment or a malformed line.
    init?(fileLine line: Substring)
    var fileLine: String { get }
}

/// The entries of hosts that have not expired or not been asked for since.
package struct HostTable<Entry: HostEntry>: Sendable {
    /// The number of entries that servers can add. Every server adds its own, and one server may have many names.
    package static var maximumCount: Int { 5_000 }

    private var entries: [Entry.Key: Known] = [:]
    /// The keys of the entries to which the limit applies: not those that the program has added.
    private var limited: Set<Entry.Key> = []

    /// An entry, and what is known about it.
    struct Known: Sendable {
        var entry: Entry
        var experience: Entry.Experience
    }

    /// Creates an empty table.
    package init() {}

    /// Whether there are no entries, not even expired ones.
    package var isEmpty: Bool { entries.isEmpty }

    /// Returns the entries that have not expired, sorted by key.
    package func current(at now: Date) -> [Entry] {
        entries.values.map(\.entry).filter { $0.expiry > now }.sorted { $0.key < $1.key }
    }

    /// The entry with a key, which may have expired; `nil` if there is none.
    subscript(key: Entry.Key) -> Known? {
        get { entries[key] }
        _modify { yield &entries[key] }
    }

    /// Adds an entry without regard to the limit, replacing the one with the same key.
    package mutating func set(_ entry: Entry) {
        limited.remove(entry.key)
        put(entry)
    }

    private mutating func put(_ entry: Entry) {
        let old = entries[entry.key].flatMap { entry.isSameService(as: $0.entry) ? $0.experience : nil }
        entries[entry.key] = Known(entry: entry, experience: old ?? Entry.noExperience)
    }

    /// Adds an entry. If there is no room, the one that would be the first to expire is removed. One that replaces an entry of
    /// the program needs none.
    package mutating func setWithinLimit(_ entry: Entry) {
        if entries[entry.key] == nil {
            if limited.count >= Self.maximumCount, let first = limited.min(by: { expiry($0) < expiry($1) }) {
                remove(first)
            }
            limited.insert(entry.key)
        }
        put(entry)
    }

    /// Adds entries, of which those remain that expire last if there is no room for all.
    package mutating func setWithinLimit(_ added: [Entry]) {
        for entry in added {
            if entries[entry.key] == nil { limited.insert(entry.key) }
            put(entry)
        }
        let excess = limited.count - Self.maximumCount
        guard excess > 0 else { return }
        limited.sorted { expiry($0) < expiry($1) }.prefix(excess).forEach { remove($0) }
    }

    private func expiry(_ key: Entry.Key) -> Date { entries[key]?.entry.expiry ?? .distantPast }

    /// Removes the entry with a key, if any.
    package mutating func remove(_ key: Entry.Key) {
        entries[key] = nil
        limited.remove(key)
    }

    /// Removes the entries of a host.
    package mutating func remove(_ host: HostName) {
        let name = host.zonedText
        for (key, known) in entries where known.entry.host == name { remove(key) }
    }
}

extension HostName {
    /// Whether the name can be written to a file.
    var isStorable: Bool { !text.isEmpty && zonedText.utf8.allSatisfy { 0x21..<0x7F ~= $0 && $0 != 0x22 } }
}

extension Date.ISO8601FormatStyle {
    /// The format of curl's files.
    static let curlFile = Date.ISO8601FormatStyle(dateSeparator: .omitted, dateTimeSeparator: .space)
        .year().month().day().time(includingFractionalSeconds: false)
}
