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
