// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A stored body, or a part of it, that is read from its file in pieces.
final class StoredBodySource: ResponseBodySource {
    private let file: FileDescriptor
    private let positions: Lock<Range<Int64>>
    private let end: ResponseEnding

    /// Opens a body file and verifies all of its bytes; returns `nil` if it is missing or damaged.
    ///
    /// The file is read twice: a damaged byte must be found before the first one is delivered.
    init?(path: String, _ body: CacheEntry.BodyFile, _ range: Range<Int64>, ending: ResponseEnding) {
        guard let file = try? FileDescriptor(reading: path),
            (try? file.regularFileSize()) == body.length
        else { return nil }
        var checksum = Checksum()
        var position: Int64 = 0
        var buffer = Data(count: Int(min(Int64(Self.piece), body.length)))
        while position < body.length {
            var span = buffer.mutableBytes
            guard let count = try? file.read(into: &span, at: position), count > 0 else { return nil }
            checksum.update(buffer.bytes.extracting(first: count))
            position += Int64(count)
        }
        guard checksum.value == body.checksum else { return nil }
        self.file = file
        positions = Lock(range)
        end = ending
    }

    @concurrent func next() async throws -> Data? {
        let (position, count) = positions.withLock { rest in
            let count = min(Int64(Self.piece), Int64(rest.count))
            defer { rest = (rest.lowerBound + count)..<rest.upperBound }
            return (rest.lowerBound, Int(count))
        }
        guard count > 0 else { return nil }
        return try file.data(at: position, count: count)
    }

    var ending: ResponseEnding? {
        positions.withLock { $0.isEmpty } ? end : nil
    }

    private static let piece = 256 << 10
}
