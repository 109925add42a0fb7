// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

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
            try await write(
                to: RequestBodyWriter { chunk in
                    try Task.checkCancellation()
                    try await file.write(chunk)
                })
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
        case .file(let path, let length): try await write(RegularFile.openPart(path), path: path, length: length)
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
        try await writer.write(chunk)
    }

    /// Writes a chunk of a user's sequence or closure.
    func writeChunk(_ chunk: Data) async throws {
        if !chunk.isEmpty { try await writer.write(chunk) }
    }

    private func write(_ bytes: Data) async throws {
        if try await combines(bytes.count) { return pending.append(bytes) }
        var rest = bytes
        while !rest.isEmpty {
            try await writer.write(rest.prefix(RequestBody.chunkSize))
            rest = rest.dropFirst(RequestBody.chunkSize)
        }
    }

    private func write(_ file: RegularFile, path: String, length: Int64?) async throws {
        let length = length ?? file.size
        let isCombined = try await combines(Int(clamping: length))
        var left = length
        while left > 0 {
            let bytes = try file.bytes(upTo: min(left, Int64(RequestBody.chunkSize)), of: path)
            guard !bytes.isEmpty else {
                throw SerializationError.multipart(.fileShrank(path: path, declared: length, read: length - left))
            }
            left -= Int64(bytes.count)
            if isCombined { pending.append(bytes) } else { try await writer.write(bytes) }
        }
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
