// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Responses that are written to files while a cache on the disk stores them.
@Suite struct CachedDownloadsTests {
    private let origin = Origin()
    private let directory: TemporaryDirectory
    private static let size = 700_000

    init() throws {
        directory = try TemporaryDirectory()
        origin.fields = [.cacheControl: "max-age=60"]
        origin.body = { number in String(repeating: "\(number)23456789\n", count: Self.size / 10) }
        origin.cache = .disk(directory.path + "/cache", memory: 0)
    }

    private func body(_ number: Int) -> Data { Data(origin.body(number).utf8) }

    private var file: String { directory.path + "/file" }

    /// Writes the response to a file.
    private func write(_ path: String = "x", from manager: SessionManager, to file: String? = nil) async throws {
        let request = try manager.request(.get, path)
        _ = try await manager.withResponse(for: request) { _, body in
            try await body.write(to: file ?? self.file)
        }
    }

    /// Returns the number of the response and its source, and verifies its body.
    private func get(_ path: String = "x", from manager: SessionManager) async throws -> String {
        let response = try await manager.data(for: try manager.request(.get, path))
        let number = Int(response.text.prefix(1)) ?? 0
        #expect(response.value == body(number))
        return "\(number) \(response.metrics.source)"
    }

    private func links(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.referenceCount] as? Int
    }

    /// Writes one byte to the file, at an offset or at its end.
    private func overwrite(at offset: Int?) throws {
        // O_WRONLY, and O_APPEND.
        let descriptor = try FileDescriptor(opening: file, flags: offset == nil ? 0o2001 : 1)
        if let offset { try descriptor.seek(to: Int64(offset)) }
        try descriptor.writeAll(Data("x".utf8).bytes)
    }

    @Test func `a body written to a file is stored as a link to that file`() async throws {
        let manager = origin.manager()
        try await write(from: manager)
        #expect(try directory.read("file") == body(1))
        #expect(try links(file) == 2)
        #expect(try await get(from: manager) == "1 cache")
        // The file written from a stored response is a copy.
        try await write(from: manager, to: directory.path + "/second")
        #expect(try directory.read("second") == body(1))
        #expect(try links(directory.path + "/second") == 1)
        origin.cache = .disk(directory.path + "/cache", memory: 0)
        #expect(try await get(from: origin.manager()) == "1 cache")
        origin.cache.removeAll()
        #expect(try directory.read("file") == body(1))
        #expect(try links(file) == 1)
    }

    @Test(arguments: [false, true])
    func `a body that replaces a file that others may write to is copied`(isDownload: Bool) async throws {
        let manager = origin.manager()
        let permissions: [FileAttributeKey: Any] = [.posixPermissions: 0o664]
        #expect(FileManager.default.createFile(atPath: file, contents: nil, attributes: permissions))
        try FileManager.default.setAttributes(permissions, ofItemAtPath: file)
        if isDownload {
            _ = try await manager.download("x", to: .file(file)).value
        } else {
            try await write(from: manager)
        }
        #expect(try directory.read("file") == body(1))
        #expect(try links(file) == 1)
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o664)
        #expect(try await get(from: manager) == "1 cache")
    }

    @Test(arguments: [false, true])
    func `a stored file answers a 304 after which it cannot stay, or be updated`(isRefused: Bool) async throws {
        origin.fields = [.cacheControl: "max-age=1", .eTag: "\"a\""]
        let manager = origin.manager()
        #expect(try await get(from: manager) == "1 network")
        origin.advance(10)
        let large = String(repeating: "x", count: 5 << 20)
        origin.respond { [origin] request, number in
            guard request.headers.contains(.ifNoneMatch) else {
                return .data(Data(origin.body(number).utf8), headers: [.cacheControl: "no-store"])
            }
            let fields: HTTPFields =
                isRefused ? [.cacheControl: "no-store", .eTag: "\"a\""] : [.contentType: large, .eTag: "\"a\""]
            return .status(.notModified, headers: fields)
        }
        #expect(try await get(from: manager) == "1 validated")
        #expect(origin.requests.count == 2)
        // What could not be updated stays as it was.
        #expect(try await get(from: manager) == (isRefused ? "3 network" : "1 validated"))
    }

    @Test(arguments: ["max-age=3600", "max-age=0, stale-while-revalidate=3600"])
    func `a response that could not be updated is not used where the update may not permit it`(control: String)
        async throws
    {
        origin.fields = [.cacheControl: control, .eTag: "\"a\""]
        let manager = origin.manager()
        #expect(try await get(from: manager) == "1 network")
        let large = String(repeating: "x", count: 5 << 20)
        origin.respond { [origin] request, number in
            guard request.headers.contains(.ifNoneMatch) else {
                return .data(Data(origin.body(number).utf8), headers: [.cacheControl: "no-store"])
            }
            return .status(
                .notModified, headers: [.cacheControl: "max-age=0", .contentType: large, .eTag: "\"a\""])
        }
        let request = try manager.request(.get, "x", headers: [.cacheControl: "no-cache"])
        let validated = try await manager.data(for: request)
        #expect(validated.metrics.source == .validated)
        #expect(validated.value == body(1))
        #expect(try await get(from: manager) == "3 network")
    }

    @Test func `a download whose path a closure chooses is copied, as others may be permitted to write to its file`()
        async throws
    {
        let manager = origin.manager()
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        try FileManager.default.setAttributes([.posixPermissions: 0o664], ofItemAtPath: file)
        let destination = DownloadDestination.chosen(temporaryDirectory: directory.path) { [file] _ in file }
        _ = try await manager.download("x", to: destination).value
        #expect(try directory.read("file") == body(1))
        #expect(try links(file) == 1)
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o664)
        #expect(try await get(from: manager) == "1 cache")
    }

    @Test(arguments: [false, true])
    func `a download task stores its file as a link`(isDurable: Bool) async throws {
        let manager = origin.manager()
        let options = DownloadOptions().with { $0.isDurable = isDurable }
        let task = manager.download("x", to: .file(file), options: options)
        _ = try await task.value
        #expect(try directory.read("file") == body(1))
        #expect(try links(file) == 2)
        let again = manager.download("x", to: .file(file), options: options)
        _ = try await again.value
        #expect(try directory.read("file") == body(1))
        #expect(origin.requests.count == 1)
    }

    @Test(arguments: [true, false])
    func `a download that a stored response answers ends with the size of the file`(isValidated: Bool) async throws {
        origin.fields = [.cacheControl: "max-age=1, stale-if-error=60", .eTag: "\"a\""]
        let manager = origin.manager()
        try await write(from: manager)
        origin.advance(10)
        if isValidated {
            origin.notModified = true
        } else {
            origin.respond { _, _ in .text("down", status: .serviceUnavailable) }
        }
        let task = manager.download("x", to: .file(file))
        _ = try await task.value
        let progress = await task.progress.reduce(into: []) { $0.append($1.counts) }
        #expect(progress.last == TransferProgress(completedBytes: Int64(Self.size), totalBytes: Int64(Self.size)))
    }

    @Test func `a file with another digest than expected is not used again`() async throws {
        let manager = origin.manager()
        let error = try await sessionError {
            let options = DownloadOptions().with { $0.expectedDigest = Self.digestOfSecond }
            _ = try await manager.download("x", to: .file(file), options: options).value
        }
        guard case .digest = error else { throw error }
        #expect(origin.cache.usage.entries == 0)
        let options = DownloadOptions().with { $0.expectedDigest = Self.digestOfSecond }
        _ = try await manager.download("x", to: .file(file), options: options).value
        #expect(try directory.read("file") == body(2))
        #expect(try await get(from: manager) == "2 cache")
    }

    @Test func `a file that could not be moved is completed from the stored response`() async throws {
        origin.fields = [.cacheControl: "max-age=60", .eTag: "\"1\"", .contentLength: "\(Self.size)"]
        let manager = origin.manager()
        let missing = directory.path + "/missing/file"
        let error = try await sessionError {
            let destination = DownloadDestination.chosen(temporaryDirectory: directory.path) { _ in missing }
            _ = try await manager.download("x", to: destination).value
        }
        let data = try #require(error.resumeData)
        // The permissions at a chosen path are not known when the response is stored, which is then a copy.
        #expect(try links(data.partialFile) == 1)
        let download = try await manager.download(resuming: data, to: .file(file)).value
        #expect(download.response.metrics.source == .cache)
        #expect(try directory.read("file") == body(1))
        #expect(origin.requests.count == 1)
    }

    /// `sha256sum` of the second body.
    private static let digestOfSecond = ContentDigest(
        "sha-256:125db7ae6beacec772c29b31b83dc423293359e0f92706094d81073caadb05c9")

    @Test func `a part of a stored response has no digest of the whole`() async throws {
        let digests = try HTTPFields(validating: [
            ("Content-Digest", ContentDigest(of: Data("0123".utf8)).fieldValue), ("Content-MD5", "YQ=="),
        ])
        let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"1\""]
        origin.respond { _, _ in
            MockResponse(
                headers: fields + digests, chunks: [Data("0123".utf8)], trailers: digests + [.from: "me"])
        }
        let manager = origin.manager()
        for expected in [ResponseSource.network, .cache] {
            let whole = try await manager.data(for: try manager.request(.get, "x"))
            #expect(whole.trailers == digests + [.from: "me"])
            #expect(whole.metrics.source == expected)
        }
        let part = try manager.request(.get, "x", headers: [.range: "bytes=2-"])
        let download = try await manager.download(part, to: .file(file)).value
        #expect(download.response.metrics.source == .cache)
        #expect(try directory.read("file") == Data("23".utf8))
        for (method, headers, trailers) in [
            (HTTPRequest.Method.get, [.range: "bytes=2-"], [.from: "me"]), (.head, [:], [:]),
            (.get, [.ifNoneMatch: "\"1\""], [:]),
        ] as [(HTTPRequest.Method, HTTPFields, HTTPFields)] {
            let response = try await manager.data(for: try manager.request(method, "x", headers: headers))
            #expect(response.metrics.source == .cache)
            #expect(response.trailers == trailers)
            #expect(digests.contains { response.headers.contains($0.name) } == !headers.contains(.range))
        }
    }

    @Test(arguments: [false, true])
    func `a stored body that the program has replaced is not that of the server`(byWillCache: Bool) async throws {
        let fields: HTTPFields = [
            .cacheControl: "max-age=60", .eTag: "\"1\"", .contentLength: "3",
            .contentDigest: try ContentDigest(of: Data("abc".utf8)).fieldValue,
        ]
        let replace = Intercepting { request, next in
            var response = try await next(request)
            response.body = response.body.transforming { _ in Data("AB".utf8) }
            return response
        }
        let manager = origin.manager {
            if byWillCache {
                $0.willCache = { proposal in
                    var proposal = proposal
                    proposal.body = Data("AB".utf8)
                    return proposal
                }
            } else {
                $0.attemptInterceptors = [replace]
            }
        }
        origin.respond { _, _ in MockResponse(headers: fields, chunks: [Data("abc".utf8)]) }
        _ = try await manager.download("x", to: .file(file)).value
        let again = try await manager.download("x", to: .file(file)).value
        #expect(again.response.metrics.source == .cache)
        #expect(try directory.read("file") == Data("AB".utf8))
        // The bytes of a range are those of the server.
        let part = try manager.request(.get, "x", headers: [.range: "bytes=1-"])
        #expect(try await manager.data(for: part).metrics.source == .network)
    }

    @Test(arguments: ["truncate", "shorten", "append", "overwrite", "permit"])
    func `a file that the program changes is not used as a stored body`(change: String) async throws {
        let manager = origin.manager()
        try await write(from: manager)
        switch change {
        // O_WRONLY and O_TRUNC.
        case "truncate": _ = try FileDescriptor(opening: file, flags: 0o1001)
        case "shorten":
            var partial = try PartialFile(path: file, opening: .existing)
            try partial.truncate(to: Int64(Self.size - 1))
            partial.keep()
        case "append": try overwrite(at: nil)
        case "overwrite":
            let modified = try FileManager.default.attributesOfItem(atPath: file)[.modificationDate]
            try overwrite(at: Self.size / 2)
            try FileManager.default.setAttributes([.modificationDate: try #require(modified)], ofItemAtPath: file)
        default: try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: file)
        }
        #expect(try await get(from: manager) == "2 network")
        #expect(try await get(from: manager) == "2 cache")
    }

    @Test(arguments: ["replace", "remove"])
    func `a file that the program replaces or removes stays stored`(change: String) async throws {
        let manager = origin.manager()
        try await write(from: manager)
        if change == "replace" {
            try Data("x".utf8).write(to: URL(filePath: file), options: .atomic)
        } else {
            try FileManager.default.removeItem(atPath: file)
        }
        #expect(try await get(from: manager) == "1 cache")
        #expect(origin.requests.count == 1)
    }

    @Test func `a file that changes while a stored response is read ends the body with an error`() async throws {
        let manager = origin.manager()
        try await write(from: manager)
        let read = Lock<[Data]>([])
        await #expect(throws: (any Error).self) {
            try await manager.withResponse(for: try manager.request(.get, "x")) { _, body in
                for try await chunk in body {
                    if read.withLock(\.isEmpty) {
                        try overwrite(at: Self.size - 10)
                    }
                    read.withLock { $0.append(chunk) }
                }
            }
        }
        #expect(body(1).starts(with: read.withLock { $0.reduce(Data(), +) }))
        #expect(try await get(from: manager) == "2 network")
    }

    @Test func `a stored body that could not be read is not complete, and is not read further`() async throws {
        let manager = origin.manager()
        try await write(from: manager)
        try await manager.withResponse(for: try manager.request(.get, "x")) { _, body in
            var chunks = body.makeAsyncIterator()
            var isFirst = true
            await #expect(throws: (any Error).self) {
                while try await chunks.next() != nil {
                    if isFirst { try overwrite(at: Self.size - 10) }
                    isFirst = false
                }
            }
            #expect(body.ending == nil)
            await #expect(throws: (any Error).self) { try await chunks.next() }
        }
    }

    @Test func `a file that others may write is not stored`() async throws {
        let manager = origin.manager()
        try await manager.withResponse(for: try manager.request(.get, "x")) { _, body in
            var isFirst = true
            try await body.write(to: file) { _ in
                guard isFirst else { return }
                isFirst = false
                for name in try directory.contents where name.hasSuffix(".part") {
                    try FileManager.default.setAttributes(
                        [.posixPermissions: 0o666], ofItemAtPath: "\(directory.path)/\(name)")
                }
            }
        }
        #expect(try links(file) == 1)
        #expect(try directory.read("file") == body(1))
        #expect(origin.cache.usage.entries == 0)
    }

    @Test func `a file in another file system is copied`() async throws {
        let other = "/dev/shm/an-cache-\(UInt64.random(in: 0...UInt64.max))"
        defer { try? FileManager.default.removeItem(atPath: other) }
        let manager = origin.manager()
        try await write(from: manager, to: other)
        #expect(try Data(contentsOf: URL(filePath: other)) == body(1))
        try Data("x".utf8).write(to: URL(filePath: other))
        #expect(try await get(from: manager) == "1 cache")
    }

    @Test func `a device is written to, and the body stored`() async throws {
        let manager = origin.manager()
        try await write(from: manager, to: "/dev/null")
        #expect(try await get(from: manager) == "1 cache")
    }

    @Test func `a short body is stored with its entry`() async throws {
        let manager = origin.manager()
        origin.body = { _ in "short" }
        try await write(from: manager)
        #expect(try links(file) == 1)
        #expect(try await origin.get(from: manager) == "short 200 cache")
    }
}
