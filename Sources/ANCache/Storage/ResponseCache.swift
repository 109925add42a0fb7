// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
package import FoundationEssentials

/// A private HTTP cache (RFC 9111) in memory, and in a directory if it has one.
///
/// A session without a cache, which is the default, sends every request. A session with one answers from it what HTTP
/// permits:
///
/// ```swift
/// let api = SessionManager { $0.cache = .standard }
/// ```
///
/// A cache may be shared by several sessions. Responses to requests with credentials are used only for requests with
/// the same credentials, or in sessions with the same `SessionConfiguration.cachePartition`. Responses that may depend on cookies, attempt interceptors, or TLS options, and those that set
/// cookies, are used only in the session that received them and in sessions with the same
/// `SessionConfiguration.cachePartition`.
///
/// Complete responses to GET are stored (RFC 9111 §3), when their body was read to its end; of one URL, at most the 32
/// variants that were used last. If a limit is exceeded, the least recently used responses are removed.
///
/// A directory may be used by several processes, and survives their end at any moment. Damaged files are removed. A
/// failure of the disk fails no request: the response then comes from the server. The exception is a stored body whose
/// file changes or cannot be read any more while the program reads it, which throws a `TransportError` with the reason
/// `connectionLost`.
public final class ResponseCache: Sendable {
    package let limits: CacheLimits
    let disk: DiskStore?
    let index: Lock<CacheIndex>
    /// The salt for checksums of credentials.
    package let salt: CacheSalt
    /// The number of insertions until the directory is scanned for the files of other processes.
    private let untilScan: Lock<Int>
    /// A description of the error because of which the directory could not be used when the cache was created, such as
    /// missing permission, with the failed system call and its `errno`: the cache is then in memory only. `nil` if the
    /// directory could be used, and for a cache without one; later failures do not change it.
    public let diskFailure: String?

    /// Creates a cache with limits, in memory and in a directory if there is one.
    package init(_ limits: CacheLimits, directory: String?) {
        self.limits = limits
        var (disk, failure): (DiskStore?, String?) = (nil, nil)
        var entries: [EntryName] = []
        var salt = CacheSalt()
        if let directory {
            do throws(SystemError) {
                // The working directory may change.
                let base = directory.hasPrefix("/") ? "" : FileManager.default.currentDirectoryPath + "/"
                let store = try DiskStore(directory: base + directory)
                entries = try store.scan()
                disk = store
                salt = CacheSalt(directory: base + directory)
            } catch {
                failure = error.description
            }
        }
        var index = CacheIndex(limits, hasDisk: disk != nil)
        index.add(entries)
        self.disk = disk
        self.salt = salt
        self.index = Lock(index)
        untilScan = Lock(Self.scanPeriod)
        diskFailure = failure
        evict()
    }

    // MARK: Entries

    /// Whether the cache is in a directory as well.
    package var hasDirectory: Bool { disk != nil }

    /// Whether entries of a key are only on the disk.
    package func mustRead(_ key: CacheKey) -> Bool {
        index.withLock { $0.slots(key) }.contains { $0.entry == nil }
    }

    /// Returns the entries of a key. Those on the disk are read, and kept in memory if they fit.
    package func entries(_ key: CacheKey) -> [CacheEntry] {
        let slots = index.withLock { $0.slots(key) }
        guard slots.contains(where: { $0.entry == nil }) else { return slots.compactMap(\.entry) }
        return slots.compactMap { slot in slot.entry ?? slot.name.flatMap { load($0) } }
    }

    private func load(_ name: EntryName) -> CacheEntry? {
        let entry: CacheEntry
        do throws(SystemError) {
            guard let read = try disk?.read(name) else {
                remove(name.key) { $0.id == name.id }
                return nil
            }
            entry = read
        } catch {
            // Without descriptors, for example, the entry is a miss this time.
            if error.fileReason == .missing { remove(name.key) { $0.id == name.id } }
            return nil
        }
        let isOver = index.withLock { index in
            index.keep(entry, key: name.key)
            return index.isOverLimit
        }
        if isOver { evict() }
        return entry
    }

    /// Returns a reader of an entry's body or a part of it, and records the use; `nil` if the body is missing or
    /// damaged, in which case the entry is removed, or if it cannot be opened at present.
    package func body(of entry: CacheEntry, _ key: CacheKey, _ range: Range<Int64>?, ending: ResponseEnding)
        -> ResponseBody?
    {
        if let name = index.withLock({ $0.use(entry.id, key: key) }) { disk?.touch(name) }
        switch entry.body {
        case .memory(let data):
            guard let range else { return ResponseBody(data, ending: ending) }
            return ResponseBody(Data(data.dropFirst(Int(range.lowerBound)).prefix(range.count)), ending: ending)
        case .file(let file):
            guard let path = disk?.path(ofBody: file.id, key) else { return nil }
            do throws(SystemError) {
                let open = try FileDescriptor(reading: path)
                if let source = StoredBodySource(open, file, range ?? 0..<file.length, ending: ending) {
                    return ResponseBody(source: source)
                }
            } catch {
                guard error.fileReason == .missing else { return nil }
            }
            remove(key) { $0.id == entry.id }
            return nil
        }
    }

    /// Adds an entry and removes those that it replaces. If the disk fails, nothing is added.
    ///
    /// - Parameters:
    ///   - start: The value of ``invalidations`` when the request was sent; `nil` if it does not matter. If the key was
    ///     invalidated since, nothing is added.
    ///   - isUpdate: Whether the entry is an update, which is not added without one that it replaces. By default it is
    ///     not.
    ///   - replaced: Whether a stored response is replaced. If one of them is newer, nothing is added; see
    ///     ``CacheEntry/isNewer(than:)``.
    package func insert(
        _ entry: CacheEntry, _ key: CacheKey, since start: UInt64? = nil, isUpdate: Bool = false,
        replacing replaced: (StoredResponse) -> Bool
    ) {
        let replaced = entries(key).filter { replaced($0.response) }
        let isObsolete = isUpdate ? replaced.isEmpty : replaced.contains { $0.isNewer(than: entry) }
        guard !isObsolete, entry.response.bodyLength <= limits.longestBody(hasDisk: disk != nil) else {
            if !isUpdate { discardBody(of: entry, key) }
            return
        }
        let old = replaced.map(\.id)
        let name: EntryName?
        do throws(SystemError) {
            name = try disk?.write(entry, key: key)
        } catch {
            discardBody(of: entry, key)
            return remove(key) { old.contains($0.id) }
        }
        let (removals, isOver) = index.withLock { index in
            index.insert(entry, key: key, name: name)
            var ids = old
            if let start, index.isInvalidated(key, since: start) { ids.append(entry.id) }
            let removals = index.remove(key) { ids.contains($0.id) }
            return (removals + index.limitVariants(key), index.isOverLimit)
        }
        perform(removals)
        if isOver { evict() }
        scanIfDue()
    }

    /// Removes the body file of an entry that is not added.
    private func discardBody(of entry: CacheEntry, _ key: CacheKey) {
        if case .file(let file) = entry.body, let disk { FileLocation.remove(disk.path(ofBody: file.id, key)) }
    }

    /// Removes the entries of a key that a response supersedes although it is not stored, or not yet, except newer ones.
    package func supersede(_ key: CacheKey, by entry: CacheEntry, where replaced: (StoredResponse) -> Bool) {
        let ids = entries(key).filter { replaced($0.response) && !$0.isNewer(than: entry) }.map(\.id)
        if !ids.isEmpty { remove(key) { ids.contains($0.id) } }
    }

    /// Returns the position of a request among those that look into the cache.
    package func nextOrder() -> UInt64 { index.withLock { $0.nextOrder() } }

    /// The number of invalidations so far, for ``insert(_:_:since:replacing:)``.
    package var invalidations: UInt64 { index.withLock(\.invalidations) }

    /// Returns a writer for the body of an entry.
    package func writer(_ key: CacheKey) -> CacheWriter {
        CacheWriter(disk: disk, key: key, limit: limits.longestBody(hasDisk: disk != nil))
    }

    /// Returns a body that is not stored yet, and removes its file; `nil` if it cannot be read.
    package func takeBody(_ body: CacheEntry.Body, _ key: CacheKey) async -> Data? {
        switch body {
        case .memory(let data): return data
        case .file(let file):
            guard let path = disk?.path(ofBody: file.id, key) else { return nil }
            defer { FileLocation.remove(path) }
            guard let open = try? FileDescriptor(reading: path) else { return nil }
            return try? await StoredBodySource(open, file, 0..<file.length, ending: ResponseEnding())?
                .collect(upTo: .max)
        }
    }

    /// Removes the entries of a key whose stored responses satisfy a condition.
    package func removeEntries(_ key: CacheKey, where condition: (StoredResponse) -> Bool) {
        let ids = entries(key).filter { condition($0.response) }.map(\.id)
        if !ids.isEmpty { remove(key) { ids.contains($0.id) } }
    }

    func remove(_ key: CacheKey, where condition: (CacheIndex.Slot) -> Bool) {
        perform(index.withLock { $0.remove(key, where: condition) })
    }

    private func perform(_ removals: [CacheIndex.Removal]) {
        for removal in removals { disk?.remove(removal.name, keepingBody: removal.keepsBody) }
    }

    // MARK: Bounds

    /// Removes the least recently used entries until the limits are kept.
    private func evict() {
        guard index.withLock({ $0.isOverLimit }) else { return }
        var times: [EntryName: Int64] = [:]
        if let disk, index.withLock({ $0.needsTimes }) {
            // Read without the lock, because there may be many files.
            let unused = index.withLock { $0.all.filter { $0.slot.lastUse == 0 }.compactMap(\.slot.name) }
            for name in unused { times[name] = disk.lastUse(of: name) ?? 0 }
        }
        perform(index.withLock { $0.evict { times[$0] } })
    }

    /// Scans the directory from time to time, so that it keeps its limits although other processes use it.
    private func scanIfDue() {
        guard disk != nil else { return }
        let count = index.withLock(\.count)
        let isDue = untilScan.withLock { rest in
            rest -= 1
            guard rest <= 0 else { return false }
            rest = max(Self.scanPeriod, count / 4)
            return true
        }
        guard isDue else { return }
        scan()
        evict()
    }

    /// Learns which entries other processes added and removed.
    ///
    /// - Parameter meanwhile: Called when the directory has been read; for testing.
    package func scan(meanwhile: () -> Void = {}) {
        let known = index.withLock(\.names)
        guard let found = try? disk?.scan() else { return }
        meanwhile()
        index.withLock { index in
            // Entries that were added or removed during the scan are neither removed nor added again.
            let others = known.union(index.names)
            index.add(found.lazy.filter { !others.contains($0) })
            for name in known.subtracting(found) { _ = index.remove(name.key) { $0.name == name } }
        }
    }

    private static let scanPeriod = 256
}

/// The limits of a cache.
package struct CacheLimits: Sendable, Hashable {
    /// The number of bytes in memory.
    package var memoryBytes: Int
    /// The number of bytes in files.
    package var diskBytes: Int64
    /// The number of entries.
    package var entries: Int

    /// Creates limits; negative numbers count as 0.
    package init(memoryBytes: Int, diskBytes: Int64, entries: Int) {
        self.memoryBytes = max(0, memoryBytes)
        self.diskBytes = max(0, diskBytes)
        self.entries = max(0, entries)
    }

    /// The size above which a body is not stored: a quarter of the capacity.
    func longestBody(hasDisk: Bool) -> Int64 {
        hasDisk ? min(diskBytes / 4, EntryName.greatestSize / 2) : Int64(memoryBytes / 4)
    }
}
