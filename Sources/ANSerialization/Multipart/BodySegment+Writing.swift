// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

extension [BodySegment] {
    /// Whether all segments can be read, so that no closure writes one.
    var areReadable: Bool { allSatisfy { $0.write == nil } }

    /// Writes all segments. Adjacent ones that can be read are combined.
    func write(to writer: sending RequestBodyWriter) async throws {
        let output = BodyOutput(writer)
        var rest = self[...]
        while !rest.isEmpty {
            let readable = rest.prefix { $0.write == nil }
            let reader = SegmentReader.make(Array(readable))
            while let chunk = try await reader.next() { try await output.write(chunk) }
            rest = rest.dropFirst(readable.count)
            if case .stream(let segment)? = rest.popFirst() { try await segment.write(to: output) }
        }
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

extension BodySegment {
    /// The closure that writes the segment; `nil` if it can be read.
    var write: BodyWriting? {
        if case .stream(let segment) = self { segment.write } else { nil }
    }
}

extension StreamSegment {
    /// Calls the closure that writes the segment; throws if the length differs from the declared one.
    fileprivate func write(to output: BodyOutput) async throws {
        guard let write else { return }
        try begin()
        let written = Lock(Int64(0))
        try await write(
            RequestBodyWriter { chunk in
                let sum = written.withLock { written in
                    written += Int64(chunk.count)
                    return written
                }
                if let length, sum > length { throw hasWrongLength(sum) }
                try await output.write(chunk)
            })
        let sum = written.withLock { $0 }
        if let length, sum != length { throw hasWrongLength(sum) }
    }
}

/// A writer to which several sources write in turn.
actor BodyOutput {
    private let writer: RequestBodyWriter

    init(_ writer: sending RequestBodyWriter) {
        self.writer = writer
    }

    func write(_ chunk: Data) async throws {
        try await writer.write(chunk)
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
