// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A stretch of a body.
enum BodySegment: Sendable {
    case bytes(Data)
    /// A file of this length, or as long as it is when it is opened.
    case file(path: String, length: Int64?)
    case stream(StreamSegment)

    /// The segment that a whole body is; the size of a file is not taken.
    init(_ body: RequestBody) {
        switch body.content {
        case .none: self = .bytes(Data())
        case .bytes(let data): self = .bytes(data)
        case .file(let path): self = .file(path: path, length: nil)
        case .stream(let length, let isReplayable, let makeReader):
            self = .stream(
                StreamSegment(name: "", length: length, isReplayable: isReplayable, makeReader: makeReader))
        }
    }

    /// The number of bytes, where it is known.
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
}

/// The segments of a body, in their order.
///
/// Small pieces of bytes next to each other become one segment: they are copied when they are appended, and the body is
/// then sent like one piece, each time.
struct BodySegments: Sendable {
    /// From here on a piece is not copied.
    static let largeSize = 32 << 10

    private var finished: [BodySegment] = []
    /// Small pieces that more can join.
    private var joined = Data()

    /// The segments, in their order.
    var all: [BodySegment] { joined.isEmpty ? finished : finished + [.bytes(joined)] }

    var isEmpty: Bool { finished.isEmpty && joined.isEmpty }

    /// The number of bytes; nil where a segment does not tell its own, and where 64 bits do not hold it.
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
        if joined.count + bytes.count > SegmentReader.chunkSize { finish() }
        joined.append(bytes)
    }

    mutating func append(_ other: BodySegments) {
        for segment in other.all { append(segment) }
    }

    private mutating func finish() {
        guard !joined.isEmpty else { return }
        finished.append(.bytes(joined))
        joined = Data()
    }
}

/// A stretch of a body that a program's own sequence yields.
struct StreamSegment: Sendable {
    /// How errors call it.
    let name: String
    let length: Int64?
    let isReplayable: Bool
    private let makeReader: @Sendable () throws -> BodyReader
    private let wasRead = Lock(false)

    init(
        name: String, length: Int64?, isReplayable: Bool, makeReader: @escaping @Sendable () throws -> BodyReader
    ) {
        self.name = name
        self.length = length
        self.isReplayable = isReplayable
        self.makeReader = makeReader
    }

    /// A reader from the start; fails the second time where the sequence yields its chunks only once.
    func open() throws -> BodyReader {
        if !isReplayable {
            let isSecond = wasRead.withLock { wasRead in
                defer { wasRead = true }
                return wasRead
            }
            guard !isSecond else { throw SerializationError.multipart(.partReadTwice(part: name)) }
        }
        return try makeReader()
    }
}
