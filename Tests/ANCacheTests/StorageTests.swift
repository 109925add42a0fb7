// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSystem
import FoundationEssentials
import Glibc
import HTTPTypes
import Testing

@Suite struct StorageTests {
    private let directory = TemporaryDirectory()

    private func disk(capacity: Int64 = 64 << 20, memory: Int = 0, entries: Int = 1_000) -> ResponseCache {
        .disk(directory.path, capacity: capacity, memory: memory, entries: entries)
    }

    // MARK: Contents

    @Test(arguments: [0, 1, 31, 32, 33, 4_096, 65_536, 65_537, 300_000])
    func `a body of any size is found again, also by another process`(size: Int) async throws {
        let body = Self.bytes(size)
        let cache = disk(memory: 1 << 20)
        try await cache.store(body, "a")
        #expect(try await cache.body("a") == body)
        #expect(try await cache.body("b") == nil)
        #expect(try await disk().body("a") == body)
        #expect(
            try await disk().body("a", 1..<Int64(max(1, size / 2))) == body.dropFirst().prefix(max(0, size / 2 - 1)))
    }

    @Test func `a cache in memory finds its bodies`() async throws {
        let cache = ResponseCache.memory()
        try await cache.store(Self.bytes(70_000), "a")
        #expect(try await cache.body("a") == Self.bytes(70_000))
        #expect(cache.usage.entries == 1)
        #expect(cache.usage.diskBytes == 0)
    }

    @Test func `only entries that are not in memory must be read`() async throws {
        let key = CacheKey(target: "a")
        let cache = disk(memory: 1 << 20)
        #expect(!cache.mustRead(key))
        try await cache.store(Self.bytes(10), "a")
        #expect(!cache.mustRead(key))
        let other = disk(memory: 1 << 20)
        #expect(other.mustRead(key))
        #expect(other.entries(key).count == 1)
        #expect(!other.mustRead(key))
    }

    @Test func `the whole response is found again`() async throws {
        let request = CacheRequest.get("Foo: 1", "Accept: a")
        let stored = StoredResponse(
            .of(404, "Vary: Foo, Bar, Cookie", "X-A: 1", "x-a: ü", "Empty: ", "Content-Length: 3"),
            trailers: [.eTag: "t"], bodyLength: 3, to: request, requestTime: after(-2), responseTime: after(1),
            owner: 77
        ).invalidated()
        disk().insert(CacheEntry(stored, body: .memory(Data("abc".utf8))), CacheKey(target: page)) { _ in true }
        let found = try #require(disk().entries(CacheKey(target: page)).first)
        #expect(found.response == stored)
        #expect(found.body == .memory(Data("abc".utf8)))
    }

    @Test func `header bytes that are no UTF-8, and control characters, are found again`() throws {
        let name = try #require(HTTPField.Name("Location"))
        var head = ResponseHead.of(301, "Cache-Control: max-age=60")
        head.headers.append(HTTPField(name: name, lenientValue: Array("/caf".utf8) + [0xE9, 0x01]))
        let stored = StoredResponse(head, to: .get(), requestTime: start, responseTime: start, owner: 0)
        disk().insert(CacheEntry(stored, body: .memory(Data())), CacheKey(target: page)) { _ in true }
        let found = try #require(disk().entries(CacheKey(target: page)).first)
        #expect(found.response == stored)
        #expect(found.response.headers.first { $0.name == name }?.reference == "/caf%E9\u{1}")
    }

    @Test func `an entry that cannot be read at present is removed with those of its target`() async throws {
        let cache = disk()
        try await cache.store(Self.bytes(10), page)
        let name = try #require(try directory.files.first)
        try directory.remove(name)
        // open(2) fails with ELOOP, for any user.
        try directory.link(name, to: name)
        #expect(cache.entries(CacheKey(target: page)).isEmpty)
        #expect(cache.usage.entries == 1)
        cache.removeEntries(target: page)
        #expect(cache.usage.entries == 0)
        #expect(try directory.files == [])
    }

    @Test func `what another process has stored before an invalidation is not used after it`() async throws {
        let (cache, other) = (disk(), disk())
        func find(_ time: CacheTime) async -> Int { await entries(cache, afterStoring: time, in: other) }
        cache.removeEntries(target: page, until: after(1))
        #expect(await find(after(1)) == 0)
        #expect(try directory.files == [])
        #expect(await find(after(2)) == 1)
        other.removeEntries(target: page, until: after(2))
        // Of many keys, only the last invalidation is known.
        for number in 0...1_000 { cache.removeEntries(target: "\(number)", until: after(3)) }
        #expect(await find(after(3)) == 0)
        #expect(await find(after(4)) == 1)
    }

    /// Stores a response to a request at a time in one cache, and returns how many another one of the same directory finds.
    private func entries(_ cache: ResponseCache, afterStoring time: CacheTime, in other: ResponseCache) async -> Int {
        let key = CacheKey(target: page)
        other.insert(CacheEntry(.of(at: time, length: 0), body: .memory(Data())), key) { _ in true }
        cache.scan()
        #expect(await cache.entries().count == cache.entries(key).count)
        return cache.entries(key).count
    }

    @Test(arguments: [1, 1_001]) func `an invalidation with an earlier time replaces none with a later one`(
        keys: Int
    ) async throws {
        let (cache, other) = (disk(), disk())
        cache.removeEntries(target: page, until: after(2))
        for number in 0..<keys { cache.removeEntries(target: keys == 1 ? page : "\(number)", until: after(1)) }
        #expect(await entries(cache, afterStoring: after(2), in: other) == 0)
        #expect(await entries(cache, afterStoring: after(3), in: other) == 1)
    }

    @Test(arguments: [false, true]) func `an invalidation in the future ends with the next one`(ofAll: Bool) async {
        let (cache, other) = (disk(), disk())
        cache.removeEntries(target: page, until: .now + CacheTime(seconds: 3_600))
        #expect(await entries(cache, afterStoring: .now, in: other) == 0)
        if ofAll { cache.removeAll() } else { cache.removeEntries(target: page) }
        #expect(await entries(cache, afterStoring: .now + CacheTime(seconds: 60), in: other) == 1)
    }

    /// A system in which the salt of a cache cannot be opened.
    private final class Shortage: SimulatedSystem {
        let millisecondsSince1970: Int64 = 0

        func randomBits() -> UInt64 { 1 }

        func willUseFile(_ call: String, _ path: String?) throws(SystemError) {
            if path?.hasSuffix("/salt") == true { throw SystemError(call: call, code: EMFILE) }
        }

        func writableBytes(of count: Int) -> Int { count }
    }

    @Test func `a salt that cannot be read at present stays, and is not that of this process`() {
        let salt = disk().salt
        #expect(SystemSimulation.run(Shortage()) { disk().salt } != salt)
        #expect(disk().salt == salt)
    }

    @Test(arguments: [false, true])
    func `the order of requests is known of entries that are not in memory`(isNewer: Bool) {
        let (cache, key) = (disk(), CacheKey(target: page))
        for (number, order) in [(1, isNewer ? 1 : 2), (2, isNewer ? 2 : 1)] as [(Int, UInt64)] {
            let response = StoredResponse.of("N: \(number)", length: 0)
            cache.insert(CacheEntry(response, body: .memory(Data()), order: order), key) { _ in true }
        }
        #expect(cache.entries(key).map { $0.response.lines.contains("N: 2") } == [isNewer])
    }

    @Test(arguments: [false, true])
    func `of two responses that are stored at the same time, the one to the later request stays`(isDisk: Bool) throws {
        let (cache, key) = (isDisk ? disk() : .memory(), CacheKey(target: page))
        func entry(_ order: UInt64) -> CacheEntry {
            CacheEntry(.of("N: \(order)", length: 0), body: .memory(Data()), order: order)
        }
        cache.insert(entry(1), key) { _ in true }
        var isFirst = true
        cache.insert(entry(2), key) { _ in
            // Another response is stored after this one has been compared with those that are there.
            if isFirst {
                isFirst = false
                cache.insert(entry(3), key) { _ in true }
            }
            return true
        }
        #expect(cache.entries(key).map { $0.response.lines.contains("N: 3") } == [true])
        if isDisk { #expect(try directory.files.count == 1) }
    }

    @Test func `an update shares the body file, which is removed with its last entry`() async throws {
        let cache = disk()
        try await cache.store(Self.bytes(100_000), "a")
        let key = CacheKey(target: "a")
        let first = try #require(cache.entries(key).first)
        cache.insert(first.with(first.response.invalidated()), key) { _ in true }
        #expect(try await cache.body("a") == Self.bytes(100_000))
        #expect(try await disk().body("a") == Self.bytes(100_000))
        #expect(try directory.files.count == 2)
        cache.removeAll()
        #expect(try directory.files == [])
        #expect(cache.usage == ResponseCache.Usage.none)
    }

    @Test func `a process that looks for a replaced entry leaves the body to the new one`() async throws {
        let cache = disk()
        try await cache.store(Self.bytes(100_000), "a")
        let other = disk()
        let key = CacheKey(target: "a")
        let first = try #require(cache.entries(key).first)
        cache.insert(first.with(first.response.invalidated()), key) { _ in true }
        // It knows only the replaced entry, and removes what belongs to that.
        #expect(other.entries(key).isEmpty)
        #expect(try await cache.body("a") == Self.bytes(100_000))
    }

    @Test func `entries that are added or removed during a scan stay so`() {
        let cache = disk()
        let entry = CacheEntry(.of(length: 1), body: .memory(Data("x".utf8)))
        let key = CacheKey(target: page)
        cache.scan { cache.insert(entry, key) { _ in true } }
        #expect(cache.usage.entries == 1)
        #expect(cache.entries(key).count == 1)
        cache.scan { cache.removeEntries(target: page) }
        #expect(cache.usage.entries == 0)
    }

    @Test func `a body that is not finished leaves nothing behind`() async throws {
        let cache = disk()
        var writer: CacheWriter? = cache.writer(CacheKey(target: "a"))
        await writer?.append(Self.bytes(100_000))
        #expect(try directory.files.count == 1)
        writer = nil
        #expect(try directory.files == [])
        let other = cache.writer(CacheKey(target: "a"))
        await other.append(Self.bytes(100_000))
        #expect(await other.finish(expected: 100_001) == nil)
        #expect(try directory.files == [])
    }

    @Test func `entries are listed with their URLs`() async throws {
        let cache = disk()
        try await cache.store(Self.bytes(5), "http://a.example/1", "Cache-Control: max-age=60")
        try await cache.store(Self.bytes(70_000), "http://a.example/2")
        let list = await cache.entries().sorted { $0.url.absoluteString < $1.url.absoluteString }
        #expect(list.map(\.url.absoluteString) == ["http://a.example/1", "http://a.example/2"])
        #expect(list.map(\.bodySize) == [5, 70_000])
        #expect(list[0].expirationDate == list[0].date.addingTimeInterval(60))
        #expect(list[1].expirationDate == nil)
        cache.remove(try #require(URL(string: "http://A.example:80/1")))
        #expect(await cache.entries().map(\.bodySize) == [70_000])
    }

    // MARK: Bounds

    @Test func `the least recently used entries are removed first`() async throws {
        for cache in [disk(entries: 3), .memory(entries: 3)] {
            for name in ["a", "b", "c"] { try await cache.store(Self.bytes(10), name) }
            #expect(try await cache.body("a") != nil)
            try await cache.store(Self.bytes(10), "d")
            #expect(try await cache.body("b") == nil)
            for name in ["a", "c", "d"] { #expect(try await cache.body(name) != nil) }
        }
    }

    @Test func `the order of use survives the process`() async throws {
        let first = disk()
        for name in ["a", "b", "c"] { try await first.store(Self.bytes(10), name) }
        // Times of files have the resolution of the kernel's clock.
        let times = try directory.files.sorted().enumerated()
        for (index, file) in times { directory.setAge(of: file, 100 - index) }
        let second = disk()
        #expect(try await second.body("a") != nil)
        #expect(try await second.body("c") != nil)
        try await disk(entries: 3).store(Self.bytes(10), "d")
        #expect(try await disk().body("b") == nil)
        #expect(try await disk().body("d") != nil)
    }

    @Test func `a target has a limited number of variants, of which the most recently used are kept`() async throws {
        let key = CacheKey(target: page)
        for cache in [disk(), .memory()] {
            for number in 0..<100 {
                let request = CacheRequest(target: page, headers: fields(["Foo: \(number)"]))
                cache.insert(
                    CacheEntry(.of("Vary: Foo", "N: \(number)", to: request, length: 0), body: .memory(Data())), key
                ) { _ in false }
                let first = cache.entries(key).first { $0.response.lines.contains("N: 0") }
                _ = cache.body(of: try #require(first), key, nil, ending: ResponseEnding())
            }
            let numbers = cache.entries(key).flatMap(\.response.lines).filter { $0.hasPrefix("N: ") }
            #expect(Set(numbers) == Set(["N: 0"] + (69..<100).map { "N: \($0)" }))
            #expect(cache.usage.entries == 32)
        }
        #expect(try directory.files.count == 32)
    }

    @Test func `the sizes are limited in memory and on the disk`() async throws {
        let limited = disk(capacity: 100_000, memory: 20_000)
        let memory = ResponseCache.memory(100_000)
        for number in 0..<50 {
            try await limited.store(Self.bytes(4_000), "\(number)")
            try await memory.store(Self.bytes(4_000), "\(number)")
        }
        #expect((80_000...100_000).contains(limited.usage.diskBytes))
        #expect(try directory.bytes == limited.usage.diskBytes)
        #expect((10_000...20_000).contains(limited.usage.memoryBytes))
        #expect((80_000...100_000).contains(memory.usage.memoryBytes))
    }

    @Test func `no more entries are removed than the limit requires`() async throws {
        for cache in [disk(entries: 1_100), .memory(entries: 1_100)] {
            for number in 0..<1_103 { try await cache.store(Self.bytes(10), "\(number)") }
            #expect(cache.usage.entries == 1_100)
            for number in 0..<3 { #expect(try await cache.body("\(number)") == nil) }
            #expect(try await cache.body("3") != nil)
        }
    }

    @Test func `a response larger than a quarter of the capacity is not stored`() async throws {
        for cache in [disk(capacity: 400_000), .memory(400_000)] {
            try await cache.store(Self.bytes(100_001), "a")
            #expect(cache.usage == ResponseCache.Usage.none)
        }
        #expect(try directory.files == [])
    }

    @Test func `opening a directory with smaller limits removes what exceeds them`() async throws {
        let cache = disk()
        for number in 0..<20 { try await cache.store(Self.bytes(1_000), "\(number)") }
        #expect(disk(entries: 5).usage.entries == 5)
        #expect(try directory.files.count == 5)
    }

    // MARK: Damage

    /// Slow, because a cache opens the directory after each of 60 changes of a file.
    @Test(arguments: [200, 70_000])
    func `a file with a changed byte is a miss`(size: Int) async throws {
        try await expectMisses(size) { whole in
            stride(from: 0, to: whole.count, by: max(1, whole.count / 60)).map { position in
                var damaged = whole
                damaged[position] ^= 0x10
                return damaged
            }
        }
    }

    @Test(arguments: [(2, true), (8_192, true), (65_534, false), (65_536, false)])
    func `an entry with more fields than a response has is damaged`(count: Int, isRead: Bool) throws {
        let response = StoredResponse(
            target: page, status: .ok, version: .http1_1, headers: [.accept: ""], trailers: [:], bodyLength: 0,
            requestTime: start, responseTime: start, variant: Variant(fields: [], isAny: false), owner: 0,
            isDecoded: false)
        let file = CacheEntry(response, body: .memory(Data())).encoded()
        let field = Data([6, 0, 0, 0] + Array("Accept".utf8) + [0, 0, 0, 0])
        let forged = Self.forged(
            file, replacing: Self.littleEndian(UInt32(1)) + field,
            by: Self.littleEndian(UInt32(count)) + Data(Array(repeating: field, count: count).joined()))
        #expect((CacheEntry(id: 1, encoded: forged)?.response.headers.count == count) == isRead)
    }

    @Test(arguments: [(1 << 37, true), (1 << 37 + 1, false), (.max, false), (-1, false)] as [(Int64, Bool)])
    func `an entry with a larger body than any that is stored is damaged`(length: Int64, isRead: Bool) async throws {
        try await disk().store(Self.bytes(70_001), "a")
        let name = try #require(try directory.files.first { $0.hasSuffix(".entry") })
        let forged = Self.forged(
            try directory.read(name), replacing: Self.littleEndian(Int64(70_001)), by: Self.littleEndian(length))
        #expect((CacheEntry(id: 1, encoded: forged)?.body.length == length) == isRead)
    }

    /// Replaces bytes in the record of an entry without a body of its own, and corrects the length and the checksum.
    private static func forged(_ file: Data, replacing old: Data, by new: Data) -> Data {
        var (record, rest) = (Data(), Data(file.dropFirst(32)))
        while let range = rest.firstRange(of: old) {
            record += rest[..<range.lowerBound] + new
            rest = Data(rest[range.upperBound...])
        }
        record += rest
        let lengths = Data(file.prefix(8)) + littleEndian(record.count) + littleEndian(0)
        var checksum = Checksum(seed: 0x3265_6863_6163_4E41)
        checksum.update(lengths.bytes)
        checksum.update(record.bytes)
        return lengths + littleEndian(checksum.value) + record
    }

    private static func littleEndian<Number: FixedWidthInteger>(_ number: Number) -> Data {
        Data((0..<Number.bitWidth / 8).map { UInt8(truncatingIfNeeded: number >> Number(8 * $0)) })
    }

    @Test(arguments: [200, 70_000])
    func `an entry with another size than its name says is a miss`(size: Int) async throws {
        try await disk().store(Self.bytes(size), "a")
        let name = try #require(try directory.files.first { $0.hasSuffix(".entry") })
        try directory.write(directory.read(name), to: String(name.dropLast(22)) + "0000000000000001.entry")
        try directory.remove(name)
        let cache = disk()
        #expect(cache.usage.diskBytes == 1)
        #expect(try await cache.body("a") == nil)
        #expect(cache.usage.entries == 0)
    }

    @Test(arguments: [200, 70_000])
    func `a truncated or extended file is a miss`(size: Int) async throws {
        try await expectMisses(size) { whole in
            [0, 1, 24, 31, 32, 33, whole.count / 2, whole.count - 1, whole.count + 1].map {
                (whole + Data([0])).prefix($0)
            }
        }
    }

    /// Damages each file of an entry in several ways, and expects that its body is not found.
    private func expectMisses(_ size: Int, _ damage: (Data) -> [Data]) async throws {
        try await disk().store(Self.bytes(size), "a", "X-A: 1")
        let files = try directory.files.map { ($0, try directory.read($0)) }
        #expect(files.count == (size > 65_536 ? 2 : 1))
        for (damaged, whole) in files {
            for bytes in damage(whole) {
                for (file, content) in files { try directory.write(file == damaged ? bytes : content, to: file) }
                let cache = disk()
                #expect(try await cache.body("a") == nil)
                #expect(cache.usage.entries == 0)
            }
        }
    }

    @Test func `an entry whose file or body was removed is a miss`() async throws {
        let cache = disk()
        try await cache.store(Self.bytes(10), "a")
        try await cache.store(Self.bytes(70_000), "b")
        try directory.removeFiles()
        #expect(try await cache.body("a") == nil)
        #expect(try await cache.body("b") == nil)
        #expect(cache.usage == ResponseCache.Usage.none)
        try await cache.store(Self.bytes(10), "a")
        #expect(try await cache.body("a") != nil)
    }

    @Test func `a body without an entry is kept for an hour, for a process that is about to write the entry`()
        async throws
    {
        try await disk().store(Self.bytes(70_000), "a")
        let entry = try #require(try directory.files.first { $0.hasSuffix(".entry") })
        try directory.remove(entry)
        _ = disk()
        #expect(try directory.files.count == 1)
        directory.setAge(of: try #require(try directory.files.first), 3_700)
        _ = disk()
        #expect(try directory.files == [])
    }

    @Test func `temporary files of processes that have ended are removed, those of others are not`() async throws {
        try await disk().store(Self.bytes(10), "a")
        let writer = disk().writer(CacheKey(target: "b"))
        await writer.append(Self.bytes(100_000))
        try directory.write(Data([1]), to: "abandoned.part")
        try directory.write(Data([1]), to: "other.txt")
        #expect(try directory.files.count == 4)
        _ = disk()
        #expect(try directory.files.count == 3)
        #expect(await writer.finish(expected: nil) != nil)
    }

    @Test func `a link that a process has left does not change the permissions of the program's file`() throws {
        _ = disk()
        let file = "\(directory.path)/program"
        try Data("x".utf8).write(to: URL(filePath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file)
        try FileManager.default.linkItem(atPath: file, toPath: "\(directory.path)/v2/abandoned.part")
        _ = disk()
        #expect(try directory.files == [])
        var status = stat()
        try unsafe #require(stat(file, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o755)
    }

    /// A system in which another process uses the directory while it is scanned, after it was read.
    private final class Scan: SimulatedSystem {
        var work: (() -> Void)?
        let millisecondsSince1970: Int64 = 0

        func randomBits() -> UInt64 { .random(in: 1 ... .max) }

        func willUseFile(_ call: String, _ path: String?) throws(SystemError) {
            if path?.hasSuffix("/abandoned.part") == true { work.take()?() }
        }

        func writableBytes(of count: Int) -> Int { count }
    }

    @Test func `the body of an entry that is replaced during a scan stays`() async throws {
        try await disk().store(Self.bytes(70_000), "a")
        let body = try #require(try directory.files.first { $0.hasSuffix(".body") })
        let entry = try #require(try directory.files.first { $0.hasSuffix(".entry") })
        let content = try directory.read(entry)
        directory.setAge(of: body, 3_700)
        try directory.remove(entry)
        try directory.write(Data(), to: "abandoned.part")
        let scan = Scan()
        // The scan has seen neither the old nor the new entry.
        scan.work = { [directory] in try? directory.write(content, to: entry) }
        SystemSimulation.run(scan) { _ = disk() }
        #expect(try directory.files == [body, entry].sorted())
        #expect(try await disk().body("a") == Self.bytes(70_000))
    }

    @Test func `a directory that cannot be used is no failure of requests`() async throws {
        let cache = ResponseCache.disk("/dev/null/cache")
        #expect(cache.diskFailure != nil)
        try await cache.store(Self.bytes(100), "a")
        #expect(try await cache.body("a") == Self.bytes(100))
        #expect(disk().diskFailure == nil)
    }

    @Test func `a disk that fails later stores nothing`() async throws {
        let cache = disk()
        try await cache.store(Self.bytes(10), "a")
        try directory.removeAll()
        #expect(FileManager.default.createFile(atPath: directory.path, contents: nil))
        try await cache.store(Self.bytes(10), "a")
        try await cache.store(Self.bytes(100_000), "b")
        #expect(try await cache.body("a") == nil)
        #expect(try await cache.body("b") == nil)
    }

    @Test func `a directory that was removed is created again`() async throws {
        let cache = disk()
        try await cache.store(Self.bytes(10), "a")
        try directory.removeAll()
        #expect(try await cache.body("a") == nil)
        try await cache.store(Self.bytes(100_000), "b")
        #expect(try await cache.body("b") == Self.bytes(100_000))
    }

    @Test func `each use of an entry is recorded for later processes`() async throws {
        let cache = disk()
        try await cache.store(Self.bytes(10), "a")
        let manager = FileManager.default
        let name = try #require(manager.contentsOfDirectory(atPath: directory.path + "/v2").first)
        let path = directory.path + "/v2/" + name
        for _ in 0..<2 {
            try manager.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: path)
            _ = try await cache.body("a")
            let date = try #require(manager.attributesOfItem(atPath: path)[.modificationDate] as? Date)
            #expect(date.timeIntervalSince1970 > 1)
        }
    }

    @Test func `entries whose bodies are missing are removed from the directory`() async throws {
        try await disk().store(Self.bytes(100_000), "a")
        let version = directory.path + "/v2"
        for name in try FileManager.default.contentsOfDirectory(atPath: version) where name.hasSuffix(".body") {
            try FileManager.default.removeItem(atPath: version + "/" + name)
        }
        disk().removeAll()
        #expect(try FileManager.default.contentsOfDirectory(atPath: version).isEmpty)
    }

    @Test func `caches that are opened at the same time have one salt`() async throws {
        for round in 0..<50 {
            let path = directory.path + "/\(round)"
            let sums = await withTaskGroup(of: UInt64.self) { group in
                for _ in 0..<8 { group.addTask { ResponseCache.disk(path).salt.checksum(of: "x") } }
                return await group.reduce(into: Set<UInt64>()) { $0.insert($1) }
            }
            #expect(sums.count == 1)
        }
    }

    // MARK: Other users

    /// As root, files can be given to another user.
    private static let plants = ["mode", "link"] + (geteuid() == 0 ? ["owner"] : [])

    /// Makes a file or a directory one that another user may have put there, or that others can read.
    private func plant(_ kind: String, _ path: String, mode: Int) throws {
        let manager = FileManager.default
        switch kind {
        case "mode": try manager.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        case "owner": try manager.setAttributes([.ownerAccountID: 65_534], ofItemAtPath: path)
        default:
            try manager.moveItem(atPath: path, toPath: directory.path + "/planted")
            try manager.createSymbolicLink(atPath: path, withDestinationPath: directory.path + "/planted")
        }
    }

    @Test(arguments: plants)
    func `an entry that another user may have written is a miss`(kind: String) async throws {
        try await disk().store(Self.bytes(200), "a")
        let name = try #require(try directory.files.first)
        try plant(kind, "\(directory.path)/v2/\(name)", mode: 0o644)
        #expect(try await disk().body("a") == nil)
    }

    @Test(arguments: plants)
    func `a salt that another user may know is replaced`(kind: String) throws {
        let salt = disk().salt
        #expect(disk().salt == salt)
        try plant(kind, directory.path + "/salt", mode: 0o644)
        let other = disk().salt
        #expect(other != salt)
        #expect(disk().salt == other)
    }

    @Test(arguments: plants)
    func `a directory that another user can change is neither used nor changed`(kind: String) async throws {
        try await disk().store(Self.bytes(200), "a")
        try directory.write(Data([1]), to: "file.part")
        let files = try directory.files
        try plant(kind, directory.path + "/v2", mode: 0o770)
        let cache = disk(memory: 1 << 20)
        #expect(cache.diskFailure != nil)
        #expect(try await cache.body("a") == nil)
        try await cache.store(Self.bytes(100), "a")
        #expect(try await cache.body("a") == Self.bytes(100))
        #expect(try directory.files == files)
    }

    // MARK: Processes

    /// Slow, because it writes 900 files.
    @Test func `two caches of one directory find each other's entries after a scan, and keep the limits`()
        async throws
    {
        let (one, two) = (disk(entries: 300), disk(entries: 300))
        for number in 0..<600 {
            try await (number % 2 == 0 ? one : two).store(Self.bytes(10), "\(number)")
        }
        for number in 600..<900 { try await one.store(Self.bytes(10), "\(number)") }
        #expect(try directory.files.count <= 300 + 256)
        let found = try directory.files.count
        #expect(disk().usage.entries == min(found, 1_000))
    }

    static func bytes(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }) }
}

extension ResponseCache.Usage {
    static var none: ResponseCache.Usage { ResponseCache.memory().usage }
}

extension ResponseCache {
    /// Stores a response to a request for a target, in place of all others.
    func store(_ body: Data, _ target: String, _ lines: String...) async throws {
        let key = CacheKey(target: target)
        let writer = writer(key)
        for start in stride(from: 0, to: body.count, by: 10_000) {
            await writer.append(Data(body[start..<min(start + 10_000, body.count)]))
        }
        guard let stored = await writer.finish(expected: Int64(body.count)) else { return }
        let response = StoredResponse(
            ResponseHead(200, lines), trailers: [:], bodyLength: stored.length, to: .get(target: target),
            requestTime: start, responseTime: start, owner: 0)
        insert(CacheEntry(response, body: stored), key) { _ in true }
    }

    /// Returns the body of the stored response for a target.
    func body(_ target: String, _ range: Range<Int64>? = nil) async throws -> Data? {
        let key = CacheKey(target: target)
        guard let entry = entries(key).first, entry.response.target == target else { return nil }
        let range = range.map { $0.clamped(to: 0..<entry.response.bodyLength) }
        return try await body(of: entry, key, range, ending: ResponseEnding())?.collect(upTo: .max)
    }
}
