// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A segment of a body.
enum BodySegment: Sendable {
    case bytes(Data)
    /// A file with its expected length; `nil` to use its length when it is opened.
    case file(path: String, length: Int64?)
    case stream(StreamSegment)

    /// Creates a segment from a complete body, without determining the size of a file.
    init(_ body: RequestBody) {
        switch body.content {
        case .none: self = .bytes(Data())
        case .bytes(let data): self = .bytes(data)
        case .file(let path): self = .file(path: path, length: nil)
        case .writer(let length, let isReplayable, let write):
            self = .stream(
                StreamSegment(name: "", length: length, isReplayable: isReplayable, files: body.files, write: write))
        }
    }

    /// Returns the segment for a file, whose length is determined now. One of which only reading tells where it ends is a
    /// stream.
    static func file(
        _ path: String, isReplayable: Bool, name: String = ""
    ) throws(SerializationError) -> BodySegment {
        do throws(SystemError) {
            if case .known = try FileLength(ofFileAt: path) {
                return .file(path: path, length: try RegularFile(path: path).size)
            }
        } catch {
            throw .multipart(.file(path: path, reason: error.description))
        }
        return .stream(
            StreamSegment(name: name, length: nil, isReplayable: isReplayable) { writer in
                do {
                    try await UnsizedFile.forEachChunk(of: path, RequestBody.chunkSize) { chunk in
                        try await writer.write(Data(chunk))
                    }
                } catch let error as SystemError {
                    throw SerializationError.multipart(.file(path: path, reason: error.description))
                }
            })
    }

    /// The number of bytes; `nil` if unknown.
    var length: Int64? {
        switch self {
        case .bytes(let data): Int64(data.count)
        case .file(_, let length): length
        case .stream(let stream): stream.length
        }
    }

    var isReplayable: Bool {
        switch self {
        case .bytes, .file: true
        case .stream(let stream): stream.isReplayable
        }
    }

    /// The paths of the files that the bytes are read from.
    var files: [String] {
        switch self {
        case .bytes: []
        case .file(let path, _): [path]
        case .stream(let stream): stream.files
        }
    }
}

/// The segments of a body in order.
///
/// Adjacent small segments of bytes are copied into one segment when they are appended, so that they are sent together.
struct BodySegments: Sendable {
    /// The size in bytes from which a segment is not copied.
    static let largeSize = 32 << 10

    private var finished: [BodySegment] = []
    /// The small segments at the end, which can still grow.
    private var joined = Data()

    /// The segments in order.
    var all: [BodySegment] { joined.isEmpty ? finished : finished + [.bytes(joined)] }

    var isEmpty: Bool { finished.isEmpty && joined.isEmpty }

    /// The number of bytes; `nil` if the length of a segment is unknown or the sum exceeds 64 bits.
    var length: Int64? {
        var length = Int64(joined.count)
        for segment in finished {
            guard let count = segment.length else { return nil }
            let (sum, overflows) = length.addingReportingOverflow(count)
            guard !overflows else { return nil }
            length = sum
        }
        return length
    }

    mutating func append(_ segment: BodySegment) {
        guard case .bytes(let bytes) = segment, bytes.count < Self.largeSize else {
            finish()
            return finished.append(segment)
        }
        if joined.count + bytes.count > RequestBody.chunkSize { finish() }
        joined.append(bytes)
    }

    private mutating func finish() {
        guard !joined.isEmpty else { return }
        finished.append(.bytes(joined))
        joined = Data()
    }
}

/// A segment of a body that comes from an asynchronous sequence or a closure.
struct StreamSegment: Sendable {
    /// The name of the segment in error messages.
    let name: String
    let length: Int64?
    let isReplayable: Bool
    let files: [String]
    /// The body that a session encodes before it is sent; `nil` for one that is sent as it is.
    let unencoded: RequestBody?
    let write: BodyWriting
    private let wasUsed = Lock(false)

    init(
        name: String, length: Int64?, isReplayable: Bool, files: [String] = [], unencoded: RequestBody? = nil,
        write: @escaping BodyWriting
    ) {
        self.files = files
        self.name = name
        self.length = length
        self.isReplayable = isReplayable
        self.unencoded = unencoded
        self.write = write
    }

    /// Notes that the segment is used; throws when called again for one that is not replayable.
    func begin() throws(SerializationError) {
        guard !isReplayable else { return }
        guard !wasUsed.set(\.self, to: true) else { throw .multipart(.partReadTwice(part: name)) }
    }
}

extension [BodySegment] {
    /// Writes all segments. Small adjacent ones are combined.
    func write(to writer: sending RequestBodyWriter) async throws {
        let output = SegmentWriter(writer)
        for segment in self { try await output.write(segment) }
        try await output.flush()
    }

    /// Writes all segments to a file, which appears under its name when it is complete.
    ///
    /// `check` receives the number of bytes before the file is committed, and can prevent that by throwing.
    func write(to path: String, check: (Int64) throws -> Void) async throws {
        do {
            let file = try FileOutput(path)
            try await write(to: RequestBodyWriter { chunk in try await file.write(chunk) })
            try check(await file.size)
            try await file.commit()
        } catch let error as SystemError {
            throw SerializationError.multipart(.notWritten(path: path, reason: error.description))
        }
    }
}

/// A writer of segments, which opens files only while it writes them.
///
/// Chunks have at most ``ANHTTP/RequestBody/chunkSize`` bytes, except for those of a user's sequence or closure.
private actor SegmentWriter {
    private let writer: RequestBodyWriter
    /// The small segments that are not written yet.
    private var pending = Data()

    init(_ writer: sending RequestBodyWriter) {
        self.writer = writer
    }

    func write(_ segment: BodySegment) async throws {
        switch segment {
        case .bytes(let bytes): try await write(bytes)
        case .file(let path, nil): try await write(.file(path, isReplayable: true))
        case .file(let path, let length?): try await write(RegularFile.openPart(path), path: path, length: length)
        case .stream(let stream):
            try await flush()
            try await stream.write(to: self)
        }
    }

    /// Writes the pending bytes.
    func flush() async throws {
        guard !pending.isEmpty else { return }
        let chunk = pending
        pending = Data()
        try await pass(chunk)
    }

    /// Writes a chunk of a user's sequence or closure.
    func writeChunk(_ chunk: Data) async throws {
        if !chunk.isEmpty { try await pass(chunk) }
    }

    private func write(_ bytes: Data) async throws {
        if try await combines(bytes.count) { return pending.append(bytes) }
        var rest = bytes
        while !rest.isEmpty {
            try await pass(rest.prefix(RequestBody.chunkSize))
            rest = rest.dropFirst(RequestBody.chunkSize)
        }
    }

    private func write(_ file: RegularFile, path: String, length: Int64) async throws {
        let isCombined = try await combines(Int(clamping: length))
        var left = length
        while left > 0 {
            let bytes = try file.bytes(upTo: min(left, Int64(RequestBody.chunkSize)), of: path)
            guard !bytes.isEmpty else {
                throw SerializationError.multipart(.fileShrank(path: path, declared: length, read: length - left))
            }
            left -= Int64(bytes.count)
            if isCombined { pending.append(bytes) } else { try await pass(bytes) }
        }
    }

    private func pass(_ chunk: Data) async throws {
        // Neither a file nor a writer need notice it.
        try Task.checkCancellation()
        try await writer.write(chunk)
    }

    /// Returns whether a number of bytes must be appended to the pending ones. Writes these first if there is no room
    /// for more.
    private func combines(_ count: Int) async throws -> Bool {
        let isSmall = count < BodySegments.largeSize
        if !isSmall || pending.count + count > RequestBody.chunkSize { try await flush() }
        return isSmall
    }
}

extension StreamSegment {
    /// Writes the segment; throws if its length differs from the declared one.
    fileprivate func write(to output: SegmentWriter) async throws {
        try begin()
        let written = Lock(Int64(0))
        try await write(
            RequestBodyWriter { chunk in
                let sum = written.withLock { written in
                    written += Int64(chunk.count)
                    return written
                }
                if let length, sum > length { throw hasWrongLength(sum) }
                try await output.writeChunk(chunk)
            })
        let sum = written.withLock { $0 }
        if let length, sum != length { throw hasWrongLength(sum) }
    }

    private func hasWrongLength(_ written: Int64) -> SerializationError {
        .multipart(.partLength(part: name, declared: length ?? 0, produced: written))
    }
}

/// An atomic file to which a source writes.
private actor FileOutput {
    private var file: AtomicFile?

    init(_ path: String) throws(SystemError) {
        file = try AtomicFile(destination: path)
    }

    /// The number of bytes written so far.
    var size: Int64 { file?.size ?? 0 }

    func write(_ data: Data) throws(SystemError) {
        try file?.write(data.bytes)
    }

    func commit() throws(SystemError) {
        try file.take()?.commit()
    }
}

extension RegularFile {
    /// Opens a file whose content is sent as part of a form.
    static func openPart(_ path: String) throws(SerializationError) -> RegularFile {
        try open(path) { SerializationError.multipart(.file(path: $0, reason: $1)) }
    }

    /// Returns the next bytes, at most `count`; empty at the end.
    fileprivate func bytes(upTo count: Int64, of path: String) throws(SerializationError) -> Data {
        var data = Data(count: Int(count))
        do throws(SystemError) {
            var bytes = data.mutableBytes
            let length = try read(into: &bytes)
            if length < data.count { data.removeLast(data.count - length) }
            return data
        } catch {
            throw .multipart(.file(path: path, reason: error.description))
        }
    }
}
