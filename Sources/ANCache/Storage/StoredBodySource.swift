// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A stored body, or a part of it, that is read from its file in pieces.
///
/// The file may be one that the program wrote the body to, and that it changes at any time.
final class StoredBodySource: ResponseBodySource {
    private let file: FileDescriptor
    private let positions: Lock<Range<Int64>>
    private let end: ResponseEnding
    /// The length of the whole body, and the checksums of its pieces.
    private let (length, pieces): (Int64, [UInt64])

    /// Verifies all bytes of an open body file; returns `nil` if it is damaged.
    ///
    /// The file is read twice: a damaged byte must be found before the first one is delivered. Each piece is then
    /// verified again, because the program may change it in between.
    init?(
        _ file: consuming FileDescriptor, _ body: CacheEntry.BodyFile, _ range: Range<Int64>, ending: ResponseEnding
    ) {
        guard (try? file.protectedFileSize()) == body.length else { return nil }
        var checksum = BodyChecksum()
        var position: Int64 = 0
        var buffer = Data(count: Int(min(Int64(BodyChecksum.pieceSize), body.length)))
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
        (length, pieces) = (body.length, checksum.pieces)
    }

    func next() async throws -> Data? {
        try Task.checkCancellation()
        return try await onGlobalExecutor { try readNext() }
    }

    private func readNext() throws -> Data? {
        let size = Int64(BodyChecksum.pieceSize)
        let (number, wanted) = positions.withLock { rest in
            let number = rest.lowerBound / size
            let end = min(rest.upperBound, (number + 1) * size)
            defer { rest = end..<rest.upperBound }
            return (number, rest.lowerBound..<end)
        }
        guard !wanted.isEmpty else { return nil }
        let start = number * size
        let count = Int(min(size, length - start))
        guard let piece = try? file.data(at: start, count: count), Checksum.of(piece.bytes) == pieces[Int(number)]
        else {
            throw TransportError(.connectionLost(.inBody(received: wanted.lowerBound, expected: length)))
        }
        guard wanted.count < count else { return piece }
        return Data(piece[Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)])
    }

    var ending: ResponseEnding? {
        positions.withLock { $0.isEmpty } ? end : nil
    }
}
