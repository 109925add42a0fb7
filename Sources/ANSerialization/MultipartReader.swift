// SPDX-License-Identifier: MIT

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
        case file(FileReader, path: String, length: Int64, left: Int64)
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
                let bytes = try file.read(upTo: Int(min(left, Int64(room))))
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
        case .file(let path, let length): .file(try FileReader(path), path: path, length: length, left: length)
        }
    }
}
