// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A reader of segments that combines small ones and opens files only while reading them.
///
/// Chunks have at most ``ANHTTP/RequestBody/chunkSize`` bytes, except for those of a user's sequence.
struct SegmentReader {
    private let segments: [BodySegment]
    private var next = 0
    /// The unread rest of the current segment.
    private var current = Source.nothing

    private enum Source {
        case nothing
        case bytes(Data)
        case file(RegularFile, path: String, length: Int64, left: Int64)
        case stream(BodyReader, StreamSegment, read: Int64)
    }

    init(_ segments: [BodySegment]) {
        self.segments = segments
    }

    /// Returns a reader for a body of segments.
    static func make(_ segments: [BodySegment]) -> BodyReader {
        var reader = SegmentReader(segments)
        return BodyReader { try await reader.nextChunk() }
    }

    /// Returns the next chunk; `nil` at the end.
    mutating func nextChunk() async throws -> Data? {
        var chunk = Data()
        while chunk.count < RequestBody.chunkSize {
            switch current {
            case .nothing:
                guard try openNext() else { return chunk.isEmpty ? nil : chunk }
            case .bytes(let bytes):
                if bytes.count < BodySegments.largeSize, chunk.count + bytes.count <= RequestBody.chunkSize {
                    chunk.append(bytes)
                    current = .nothing
                    continue
                }
                guard chunk.isEmpty else { return chunk }
                let piece = bytes.prefix(RequestBody.chunkSize)
                current = piece.count < bytes.count ? .bytes(bytes.dropFirst(piece.count)) : .nothing
                return piece
            case .file(let file, let path, let length, let left):
                guard left > 0 else {
                    current = .nothing
                    continue
                }
                // A large file is read directly into its own chunks.
                guard chunk.isEmpty || left < BodySegments.largeSize else { return chunk }
                let bytes = try file.bytes(upTo: min(left, Int64(RequestBody.chunkSize - chunk.count)), of: path)
                guard !bytes.isEmpty else {
                    throw SerializationError.multipart(
                        .fileShrank(path: path, declared: length, read: length - left))
                }
                current = .file(file, path: path, length: length, left: left - Int64(bytes.count))
                if chunk.isEmpty { chunk = bytes } else { chunk.append(bytes) }
            case .stream(let reader, let segment, let read):
                guard chunk.isEmpty else { return chunk }
                if let bytes = try await nextChunk(of: reader, segment, read: read) { return bytes }
            }
        }
        return chunk
    }

    /// Opens the next segment; returns `false` if there is no more.
    private mutating func openNext() throws -> Bool {
        guard next < segments.count else { return false }
        switch segments[next] {
        case .bytes(let bytes): current = .bytes(bytes)
        case .file(let path, let length):
            let file = try RegularFile.openPart(path)
            current = .file(file, path: path, length: length ?? file.size, left: length ?? file.size)
        case .stream(let segment): current = .stream(try segment.open(), segment, read: 0)
        }
        next += 1
        return true
    }

    /// Returns the next chunk of a user's sequence; `nil` at its end. Throws if its length differs from the declared
    /// one.
    private mutating func nextChunk(of reader: BodyReader, _ segment: StreamSegment, read: Int64) async throws -> Data?
    {
        guard let bytes = try await reader.next() else {
            if let length = segment.length, read != length { throw segment.hasWrongLength(read) }
            current = .nothing
            return nil
        }
        let read = read + Int64(bytes.count)
        if let length = segment.length, read > length { throw segment.hasWrongLength(read) }
        current = .stream(reader, segment, read: read)
        return bytes.isEmpty ? nil : bytes
    }
}

extension StreamSegment {
    func hasWrongLength(_ read: Int64) -> SerializationError {
        .multipart(.partLength(part: name, declared: length ?? 0, produced: read))
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
