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
            self = .stream(StreamSegment(name: "", length: length, isReplayable: isReplayable, write: write))
        }
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

    mutating func append(_ other: BodySegments) {
        for segment in other.all { append(segment) }
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
    let write: BodyWriting
    private let wasUsed = Lock(false)

    init(name: String, length: Int64?, isReplayable: Bool, write: @escaping BodyWriting) {
        self.name = name
        self.length = length
        self.isReplayable = isReplayable
        self.write = write
    }

    /// Notes that the segment is used; throws when called again for one that is not replayable.
    func begin() throws(SerializationError) {
        guard !isReplayable else { return }
        guard !wasUsed.set(\.self, to: true) else { throw .multipart(.partReadTwice(part: name)) }
    }
}
