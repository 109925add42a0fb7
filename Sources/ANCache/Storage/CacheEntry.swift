// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
package import FoundationEssentials
import HTTPTypes

/// A stored response with its body. It never changes: an update is another entry.
package final class CacheEntry: Sendable {
    /// The number that distinguishes entries of a cache; random, so that processes do not choose the same.
    package let id: UInt64
    /// The response.
    package let response: StoredResponse
    /// The body.
    package let body: Body
    /// The position of its request, or of the one that last validated it, among those that were sent in this process; 0
    /// if another process has stored it. It is not part of the entry's file.
    package let order: UInt64

    /// A stored body.
    package enum Body: Sendable, Hashable {
        /// Bytes in memory, and in the entry's file if there is one.
        case memory(Data)
        /// A file of its own, with its checksum.
        case file(BodyFile)
    }

    /// A file that contains a body.
    package struct BodyFile: Sendable, Hashable {
        /// The number that is part of the file's name; not 0.
        package let id: UInt64
        /// The number of bytes.
        package let length: Int64
        /// The checksum of the bytes.
        package let checksum: UInt64
    }

    /// Creates an entry, by default with a new number.
    package init(
        _ response: StoredResponse, body: Body, id: UInt64 = .systemRandom(in: 1 ... .max), order: UInt64 = 0
    ) {
        self.id = id
        self.order = order
        self.response = response
        self.body = body
    }

    /// Returns an entry with the same body for a changed response.
    package func with(_ response: StoredResponse, order: UInt64 = 0) -> CacheEntry {
        CacheEntry(response, body: body, order: order)
    }

    /// Whether the entry is not replaced by another one: its request was sent later, or its response has a later date.
    ///
    /// A date after the receipt of the other response is wrong, and does not count.
    package func isNewer(than other: CacheEntry) -> Bool {
        if order != 0, other.order != 0, order > other.order { return true }
        let date = response.rules.date
        return date > other.response.rules.date && date <= other.response.responseTime
    }

    /// An estimate of the bytes that the entry occupies in memory.
    package var memoryCost: Int {
        var cost = 800 + response.target.utf8.count
        for fields in [response.headers, response.trailers] {
            for field in fields { cost += 80 + field.name.rawName.utf8.count + field.value.utf8.count }
        }
        if case .memory(let data) = body { cost += data.count }
        return cost
    }
}

extension CacheEntry {
    /// The entry's file: 32 bytes with the lengths and the checksum, the response, and a body in memory.
    package func encoded() -> Data {
        var record = RecordWriter()
        response.write(to: &record)
        var inline = Data()
        switch body {
        case .memory(let data):
            record.write(UInt64(0))
            inline = data
        case .file(let file):
            record.write(file.id)
            record.write(file.length)
            record.write(file.checksum)
        }
        var lengths = RecordWriter()
        lengths.write(Self.magic)
        lengths.write(UInt64(record.bytes.count))
        lengths.write(UInt64(inline.count))
        var checksum = Checksum(seed: Self.magic)
        checksum.update(lengths.bytes.bytes)
        checksum.update(record.bytes.bytes)
        checksum.update(inline.bytes)
        lengths.write(checksum.value)
        return lengths.bytes + record.bytes + inline
    }

    /// Reads an entry's file; `nil` if it is damaged or of another version.
    package convenience init?(id: UInt64, encoded file: Data, order: UInt64 = 0) {
        var lengths = RecordReader(file)
        guard lengths.number(UInt64.self) == Self.magic, let recordLength = lengths.number(UInt64.self),
            let inlineLength = lengths.number(UInt64.self), let expected = lengths.number(UInt64.self),
            let content = UInt64(exactly: file.count - Self.prefix), recordLength <= content,
            inlineLength == content - recordLength
        else { return nil }
        var checksum = Checksum(seed: Self.magic)
        checksum.update(file.prefix(24).bytes)
        checksum.update(file.dropFirst(Self.prefix).bytes)
        guard checksum.value == expected else { return nil }
        let end = file.startIndex + Self.prefix + Int(recordLength)
        var record = RecordReader(file[(file.startIndex + Self.prefix)..<end])
        guard let response = StoredResponse(from: &record), let bodyID = record.number(UInt64.self) else { return nil }
        let body: Body
        if bodyID != 0 {
            guard let length = record.number(Int64.self), length <= EntryName.greatestSize / 2,
                let checksum = record.number(UInt64.self), inlineLength == 0
            else { return nil }
            body = .file(BodyFile(id: bodyID, length: length, checksum: checksum))
        } else {
            // A slice would keep the whole file in memory, and its indices do not start at 0.
            body = .memory(Data(file[end...]))
        }
        guard record.isAtEnd, response.bodyLength == body.length else { return nil }
        self.init(response, body: body, id: id, order: order)
    }

    /// The first bytes of each entry's file, which name the version of its form: `ANcache2`.
    private static let magic: UInt64 = 0x3265_6863_6163_4E41
    private static let prefix = 32
}

extension CacheEntry.Body {
    /// The number of bytes.
    package var length: Int64 {
        switch self {
        case .memory(let data): Int64(data.count)
        case .file(let file): file.length
        }
    }
}

/// The checksum of a body in a file: the checksum of those of its pieces, which are verified when they are read.
struct BodyChecksum: Sendable {
    /// The checksums of the complete pieces.
    private var complete: [UInt64] = []
    /// The checksum of the last piece, and the number of its bytes.
    private var last = (checksum: Checksum(), size: 0)

    /// The size of each piece except the last one.
    static let pieceSize = 256 << 10

    /// Adds bytes.
    mutating func update(_ bytes: borrowing RawSpan) {
        var offset = 0
        while offset < bytes.byteCount {
            let end = min(bytes.byteCount, offset + Self.pieceSize - last.size)
            last.checksum.update(bytes.extracting(offset..<end))
            last.size += end - offset
            offset = end
            guard last.size == Self.pieceSize else { return }
            complete.append(last.checksum.value)
            last = (Checksum(), 0)
        }
    }

    /// The checksums of all pieces so far.
    var pieces: [UInt64] { last.size == 0 ? complete : complete + [last.checksum.value] }

    /// The checksum of all bytes so far.
    var value: UInt64 {
        var record = RecordWriter()
        for piece in pieces { record.write(piece) }
        return Checksum.of(record.bytes.bytes)
    }
}

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

    /// Returns the rest of the body, also in a cancelled task. It blocks, and so belongs on the global executor.
    func readRest() throws -> Data {
        var rest = Data()
        while let chunk = try readNext() { rest.append(chunk) }
        return rest
    }

    private func readNext() throws -> Data? {
        let size = Int64(BodyChecksum.pieceSize)
        let rest = positions.withLock(\.self)
        guard !rest.isEmpty else { return nil }
        let number = rest.lowerBound / size
        let wanted = rest.lowerBound..<min(rest.upperBound, (number + 1) * size)
        let start = number * size
        let count = Int(min(size, length - start))
        guard let piece = try? file.data(at: start, count: count), Checksum.of(piece.bytes) == pieces[Int(number)]
        else {
            throw TransportError(.connectionLost(.inBody(received: wanted.lowerBound, expected: length)))
        }
        // Bytes that cannot be read stay, so that the body has no end.
        positions.set(\.self, to: wanted.upperBound..<rest.upperBound)
        guard wanted.count < count else { return piece }
        return Data(piece[Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)])
    }

    var ending: ResponseEnding? {
        positions.withLock { $0.isEmpty } ? end : nil
    }
}
