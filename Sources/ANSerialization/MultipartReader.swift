// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

/// Reads segments one after the other in chunks of 64 KiB, small segments together; files are open only while needed.
final class MultipartReader {
    static let chunkSize = 64 << 10

    private var segments: ArraySlice<MultipartSegment>
    /// What is left of the segment being read.
    private var current = Source.nothing

    private enum Source {
        case nothing
        case bytes(Data)
        case file(RegularFile, path: String, length: Int64, left: Int64)
    }

    init(_ segments: [MultipartSegment]) {
        self.segments = segments[...]
    }

    /// The next chunk; nil at the end.
    func next() throws(SerializationError) -> Data? {
        var chunk = Data()
        while chunk.count < Self.chunkSize {
            let room = Self.chunkSize - chunk.count
            switch current {
            case .bytes(let bytes) where !bytes.isEmpty:
                chunk += bytes.prefix(room)
                current = .bytes(bytes.dropFirst(room))
            case .file(let file, let path, let length, let left) where left > 0:
                let bytes = try file.bytes(upTo: Int(min(left, Int64(room))), of: path)
                guard !bytes.isEmpty else {
                    throw .multipart(.fileShrank(path: path, declared: length, read: length - left))
                }
                chunk += bytes
                current = .file(file, path: path, length: length, left: left - Int64(bytes.count))
            case .nothing, .bytes, .file:
                guard let segment = segments.popFirst() else { return chunk.isEmpty ? nil : chunk }
                current = try open(segment)
            }
        }
        return chunk
    }

    private func open(_ segment: MultipartSegment) throws(SerializationError) -> Source {
        switch segment {
        case .bytes(let bytes): .bytes(bytes)
        case .file(let path, let length): .file(try RegularFile.open(path), path: path, length: length, left: length)
        }
    }
}

extension RegularFile {
    static func open(_ path: String) throws(SerializationError) -> RegularFile {
        do throws(SystemError) {
            return try RegularFile(path: path)
        } catch {
            throw .multipart(.file(path: path, reason: error.description))
        }
    }

    /// The next bytes, at most `count`; none at the end.
    fileprivate func bytes(upTo count: Int, of path: String) throws(SerializationError) -> Data {
        var data = Data(count: count)
        do throws(SystemError) {
            var bytes = data.mutableBytes
            let length = try read(into: &bytes)
            data.removeLast(count - length)
            return data
        } catch {
            throw .multipart(.file(path: path, reason: error.description))
        }
    }
}
