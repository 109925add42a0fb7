// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials

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
                let directory = directory.absolutePath
                let store = try DiskStore(directory: directory)
                entries = try store.scan()
                disk = store
                salt = CacheSalt(directory: directory)
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

    /// Whether there are entries of a key.
    package func hasEntries(_ key: CacheKey) -> Bool { !index.withLock { $0.slots(key) }.isEmpty }

    /// Returns the entries of a key. Those on the disk are read, and kept in memory if they fit.
    package func entries(_ key: CacheKey) -> [CacheEntry] {
        index.withLock { $0.slots(key) }.compactMap(entry)
    }

    /// Returns the entry of a slot; `nil` if its file is missing or damaged, in which case it is removed, or cannot be
    /// read at present.
    private func entry(_ slot: CacheIndex.Slot) -> CacheEntry? {
        guard slot.entry == nil, let name = slot.name else { return slot.entry }
        let entry: CacheEntry
        do throws(SystemError) {
            guard let read = try read(name, of: slot) else {
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

    /// Reads the file of an entry; `nil` if it is damaged, or another process has stored what this one has invalidated.
    private func read(_ name: EntryName, of slot: CacheIndex.Slot) throws(SystemError) -> CacheEntry? {
        guard let entry = try disk?.read(name, order: slot.order) else { return nil }
        return slot.invalidation.map { entry.response.requestTime <= $0 } == true ? nil : entry
    }

    /// Records that the server has refused the credentials of a validation of an entry in the background, or nobody could
    /// decide on its response, until the entry is updated, replaced or removed.
    package func noteRefusal(of entry: CacheEntry, _ key: CacheKey) {
        index.withLock { $0.noteRefusal(of: entry.id, key: key) }
    }

    /// Whether the last validation of an entry in the background was refused.
    package func isRefused(_ entry: CacheEntry, _ key: CacheKey) -> Bool {
        index.withLock { $0.slots(key) }.contains { $0.id == entry.id && $0.isRefused }
    }

    /// Records the use of an entry, also one that needs no body.
    package func noteUse(of entry: CacheEntry, _ key: CacheKey) {
        if let name = index.withLock({ $0.use(entry.id, key: key) }) { disk?.touch(name) }
    }

    /// Returns a reader of an entry's body or a part of it, and records the use; `nil` if the body is missing or
    /// damaged, in which case the entry is removed, or if it cannot be opened at present.
    package func body(of entry: CacheEntry, _ key: CacheKey, _ range: Range<Int64>?, ending: ResponseEnding)
        -> ResponseBody?
    {
        noteUse(of: entry, key)
        switch entry.body {
        case .memory(let data):
            guard let range else { return ResponseBody(data, ending: ending) }
            return ResponseBody(Data(data.dropFirst(Int(range.lowerBound)).prefix(range.count)), ending: ending)
        case .file(let file):
            guard let path = disk?.path(ofBody: file.id, key) else { return nil }
            do throws(SystemError) {
                let open = try FileDescriptor(openingUnlinked: path)
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
    /// If the key was invalidated since the request was sent, nothing is added either.
    ///
    /// - Parameter replaced: Whether a stored response is replaced. If one of them is newer, nothing is added; see
    ///   ``CacheEntry/isNewer(than:)``.
    package func insert(_ entry: CacheEntry, _ key: CacheKey, replacing replaced: (StoredResponse) -> Bool) {
        guard entry.response.bodyLength <= limits.longestBody(hasDisk: disk != nil) else {
            return discardBody(of: entry, key)
        }
        var place = Place.open
        var isAdded = false
        while !isAdded {
            // A scan may have found the file of the entry itself.
            let slots = index.withLock { $0.slots(key) }.filter { $0.id != entry.id }
            let old = obsolete(slots, after: entry, where: replaced)
            guard !old.contains(where: \.isNewer) else {
                switch place {
                case .open: discardBody(of: entry, key)
                case .memory: break
                case .files(let name): removeFiles(name, of: entry, key)
                }
                return
            }
            do throws(SystemError) {
                if case .open = place {
                    place = if let disk { .files(try disk.write(entry, key: key)) } else { .memory }
                }
            } catch {
                discardBody(of: entry, key)
                return remove(key) { slot in old.contains { $0.id == slot.id } }
            }
            let known = Set(slots.map(\.id)).union([entry.id])
            isAdded = add(entry, key, place.name) { current in
                // One that was added meanwhile must be compared with the entry, too.
                known.isSuperset(of: current) ? old.map(\.id) : nil
            }
        }
    }

    /// The place of an entry that is being inserted, besides the index.
    private enum Place {
        /// Nowhere yet; it may have a body file.
        case open
        /// Nowhere: the cache is in memory.
        case memory
        /// In files with a name.
        case files(EntryName)

        var name: EntryName? { if case .files(let name) = self { name } else { nil } }
    }

    /// Replaces an entry by an update of it, which has the same body, unless the entry is not there any more, or its key
    /// was invalidated since the request of the update was sent.
    ///
    /// - Returns: `false` if the disk fails. The entry then stays.
    package func update(_ old: CacheEntry, to entry: CacheEntry, _ key: CacheKey) -> Bool {
        do throws(SystemError) {
            let files = try disk?.write(entry, key: key)
            let isAdded = add(entry, key, files) { $0.contains(old.id) ? [old.id] : nil }
            if !isAdded, let files { removeFiles(files, of: entry, key) }
            return true
        } catch {
            return false
        }
    }

    /// Adds an entry in place of those that `replaced` returns, given the numbers of the entries of the key. If it returns
    /// `nil`, nothing is added, and the result is `false`.
    private func add(
        _ entry: CacheEntry, _ key: CacheKey, _ files: EntryName?, replacing replaced: ([UInt64]) -> [UInt64]?
    ) -> Bool {
        let removals: [CacheIndex.Removal]? = index.withLock { index in
            guard var old = replaced(index.slots(key).map(\.id)) else { return nil }
            index.insert(entry, key: key, name: files)
            if index.isInvalidated(key, since: entry.order) { old.append(entry.id) }
            return index.remove(key) { old.contains($0.id) } + index.limitVariants(key)
        }
        guard let removals else { return false }
        perform(removals)
        evict()
        scanIfDue()
        return true
    }

    /// Removes the files of an entry that is not added, although a scan may have found them. The body stays if another
    /// entry has it.
    private func removeFiles(_ files: EntryName, of entry: CacheEntry, _ key: CacheKey) {
        let removals = index.withLock { index in
            // Otherwise it is not known whether another entry has the body.
            index.add([files])
            return index.remove(key) { $0.id == entry.id }
        }
        perform(removals)
    }

    /// Removes the body file of an entry that is not added.
    private func discardBody(of entry: CacheEntry, _ key: CacheKey) {
        if case .file(let file) = entry.body, let disk { FileLocation.remove(disk.path(ofBody: file.id, key)) }
    }

    /// Removes the entries of a key that a response supersedes although it is not stored, or not yet, except newer ones.
    package func supersede(_ key: CacheKey, by entry: CacheEntry, where replaced: (StoredResponse) -> Bool) {
        let old = obsolete(index.withLock { $0.slots(key) }, after: entry, where: replaced).filter { !$0.isNewer }
        remove(key) { slot in old.contains { $0.id == slot.id } }
    }

    /// Returns the numbers of the entries that another one replaces, and whether they are newer. One that cannot be read
    /// at present may be among them, and counts.
    private func obsolete(
        _ slots: [CacheIndex.Slot], after entry: CacheEntry, where replaced: (StoredResponse) -> Bool
    ) -> [(id: UInt64, isNewer: Bool)] {
        slots.compactMap { slot in
            guard let old = self.entry(slot) else { return (slot.id, entry.order != 0 && slot.order > entry.order) }
            return replaced(old.response) ? (slot.id, old.isNewer(than: entry)) : nil
        }
    }

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
            return await onGlobalExecutor {
                defer { FileLocation.remove(path) }
                guard let open = try? FileDescriptor(openingUnlinked: path) else { return nil }
                return try? StoredBodySource(open, file, 0..<file.length, ending: ResponseEnding())?.readRest()
            }
        }
    }

    /// Removes an entry of a key.
    package func remove(_ entry: CacheEntry, _ key: CacheKey) { remove(key) { $0.id == entry.id } }

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
        while true {
            let eviction = index.withLock { $0.evict(times) }
            perform(eviction.removals)
            guard !eviction.unread.isEmpty else { return }
            // Read without the lock, because there may be many files. A missing one is the first to be removed.
            for name in eviction.unread { times[name] = disk?.lastUse(of: name) ?? .min }
        }
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

extension ResponseCache {
    /// Removes all stored responses to requests for a URL, in memory and in the directory, before returning. It may
    /// read and delete files, and blocks the calling thread while it does so.
    ///
    /// Responses to requests for the URL that are in flight are not stored either. Responses that other processes have
    /// stored in the directory, and that this process has not noticed yet, are removed instead of being used; see
    /// ``usage``.
    ///
    /// - Parameter url: The URL with its query. User information, fragment, a default port, and the case of scheme and
    ///   host are ignored. Without stored responses, nothing happens.
    public func remove(_ url: URL) {
        removeEntries(target: CacheKey.target(url))
    }

    /// Removes the entries of a normalized target. The responses to requests that are in flight are not stored, and those
    /// that another process has stored are not used, if their requests were sent until a time, by default the current one.
    package func removeEntries(target: String, until time: CacheTime = .now) {
        let key = CacheKey(target: target)
        let slots = index.withLock { index in
            index.invalidate(key, at: time)
            return index.slots(key)
        }
        // One that cannot be read at present may be of the target.
        let ids = slots.filter { entry($0)?.response.target ?? target == target }.map(\.id)
        remove(key) { ids.contains($0.id) }
    }

    /// Removes all stored responses, including those that other processes have stored in the directory, before
    /// returning. It scans the directory and deletes files, and blocks the calling thread while it does so.
    ///
    /// Responses to requests that are in flight in this process are not stored either. The directory itself remains.
    public func removeAll() {
        index.withLock { $0.invalidate(nil, at: .now) }
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
    /// Those in the directory are read on the global executor; files that are missing or damaged are omitted. Being
    /// listed does not count as a use.
    public func entries() async -> [Entry] {
        let slots = index.withLock { Array($0.all.map(\.slot)) }
        return await onGlobalExecutor {
            slots.compactMap { slot in
                (slot.entry ?? slot.name.flatMap { try? read($0, of: slot) }).map { Entry($0.response) }
            }
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

extension ResponseCache {
    /// The cache of the program, in memory and in a directory: 16 MiB and 256 MiB, at most 100,000 responses. It is
    /// created at its first use, which creates and scans the directory and blocks the calling thread while it does so.
    ///
    /// The directory is `$XDG_CACHE_HOME/PROGRAM/http`, or else `$HOME/.cache/PROGRAM/http` (XDG Base Directory
    /// Specification), with the last component of `argv[0]` as the name of the program. If the directory cannot be
    /// used, the cache is in memory only, and ``diskFailure`` is the reason. If neither variable is an absolute path,
    /// the cache is in memory only, with at most 10,000 responses, and ``diskFailure`` is `nil`.
    public static let standard = makeStandard()

    /// Creates a cache like ``standard`` with other capacities in bytes. Capacities on the disk that are about equal, up to
    /// the same power of two, share a directory beside that of the standard cache: a cache removes what is above its
    /// capacity from its directory, and a program may compute its capacity anew at each start.
    package static func makeStandard(capacity: Int64? = nil, memory: Int = 16 << 20) -> ResponseCache {
        let environment = ProcessInfo.processInfo.environment
        let home = environment["HOME"].flatMap { $0.isAbsolutePath ? $0 + "/.cache" : nil }
        let base = environment["XDG_CACHE_HOME"].flatMap { $0.isAbsolutePath ? $0 : nil } ?? home
        let program = CommandLine.arguments.first?.split(at: "/").last.map(String.init) ?? "program"
        let name = capacity.map { "http-\(Int64.bitWidth - max(0, $0 - 1).leadingZeroBitCount)" } ?? "http"
        return base.map { .disk("\($0)/\(program)/\(name)", capacity: capacity ?? 256 << 20, memory: memory) }
            ?? .memory(memory)
    }

    /// Creates a cache in memory. Negative limits count as 0, with which nothing is kept.
    ///
    /// - Parameters:
    ///   - bytes: The capacity in bytes, for bodies and heads; 16 MiB by default. A response whose body is larger than
    ///     a quarter of it is not stored.
    ///   - entries: The maximum number of responses, 10,000 by default.
    public static func memory(_ bytes: Int = 16 << 20, entries: Int = 10_000) -> ResponseCache {
        ResponseCache(CacheLimits(memoryBytes: bytes, diskBytes: 0, entries: entries), directory: nil)
    }

    /// Creates a cache in a directory, with a part of it in memory. Negative limits count as 0.
    ///
    /// The directory is scanned before this function returns, which takes about 2 ms for 1,000 responses, and responses
    /// above the limits are removed. It is created if it is missing; the responses are in its subdirectory `v2`, which
    /// is created so that only its owner can read it. If the directory cannot be used, or another user can change the
    /// subdirectory, the cache is in memory only, with the capacity `memory`; see ``diskFailure``. Responses in files
    /// that another user may have written, or that others can read, are removed.
    ///
    /// Stored are URLs with their queries, responses with their header fields, including `Set-Cookie`, and, instead of
    /// the credentials of requests, salted checksums of them. A body of more than 64 KiB that the program downloads to
    /// a file is a hard link to that file if possible; if the program changes the file, the stored response is removed
    /// at its next use.
    ///
    /// - Parameters:
    ///   - directory: The path of the directory, absolute or relative to the working directory at the time of this
    ///     call.
    ///   - capacity: The capacity of the directory in bytes, 256 MiB by default; 0 stores nothing. A response whose
    ///     body is larger than a quarter of it is not stored.
    ///   - memory: The capacity in memory in bytes, 16 MiB by default; 0 keeps nothing there. Heads, and bodies up to
    ///     64 KiB, are kept there in addition to the directory, as long as they fit; those used last have priority. A
    ///     response that takes more than a quarter of the capacity is only in the directory.
    ///   - entries: The maximum number of responses, 100,000 by default; 0 stores nothing.
    public static func disk(
        _ directory: String, capacity: Int64 = 256 << 20, memory: Int = 16 << 20, entries: Int = 100_000
    ) -> ResponseCache {
        ResponseCache(
            CacheLimits(memoryBytes: memory, diskBytes: capacity, entries: entries), directory: directory)
    }
}
