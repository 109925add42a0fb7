// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// The producer of a request's body, in chunks of at most 256 KiB or as the program's own code yields them.
struct BodySource: Sendable {
    /// The length in bytes; `nil` if it is unknown.
    let length: Int64?
    /// Whether the body can be produced a second time.
    let isReplayable: Bool
    /// Writes the whole body.
    let produce: BodyWriting

    /// Creates the source of a body. The size of a file is read at this point.
    ///
    /// - Throws: ``TransportError/Reason/requestBody(_:)`` for a file that cannot be opened;
    ///   ``TransportError/Reason/invalidRequest(_:)`` for a negative length.
    init(_ body: RequestBody) throws(TransportError) {
        switch body.content {
        case .none:
            self.init(length: 0) { _ in }
        case .bytes(let data):
            self.init(length: Int64(data.count)) { writer in
                var rest = data
                while !rest.isEmpty {
                    try await writer.write(rest.prefix(RequestBody.chunkSize))
                    rest = rest.dropFirst(RequestBody.chunkSize)
                }
            }
        case .file(let path):
            switch try FileLength.ofBody(path) {
            case .known(let size):
                self.init(length: size) { writer in
                    let file = try RegularFile.open(path, TransportError.RequestBodyFailure.file)
                    while let chunk = try file.nextChunk(of: path) { try await writer.write(chunk) }
                }
            case .generated, .stream:
                self.init(length: nil, isReplayable: body.isReplayable) { writer in
                    do {
                        try await UnsizedFile.forEachChunk(of: path, RequestBody.chunkSize) { chunk in
                            try await writer.write(Data(chunk))
                        }
                    } catch let error as SystemError {
                        throw TransportError.RequestBodyFailure.file(path: path, reason: error.description)
                    }
                }
            }
        case .writer(let length, let isReplayable, let write):
            try body.checkLength()
            self.init(length: length, isReplayable: isReplayable, produce: write)
        }
    }

    private init(
        length: Int64?, isReplayable: Bool = true, produce: @escaping BodyWriting
    ) {
        self.length = length
        self.isReplayable = isReplayable
        self.produce = produce
    }
}

extension FileLength {
    fileprivate static func ofBody(_ path: String) throws(TransportError) -> FileLength {
        do throws(SystemError) {
            let length = try FileLength(ofFileAt: path)
            // Checks that it can be read.
            if case .known = length { _ = try RegularFile(path: path) }
            return length
        } catch {
            throw TransportError(.requestBody(.file(path: path, reason: error.description)))
        }
    }
}

extension RegularFile {
    /// Returns the next bytes of the body; `nil` at the end. The pump detects a premature end by the length.
    fileprivate func nextChunk(of path: String) throws(TransportError.RequestBodyFailure) -> Data? {
        var chunk = Data(count: Int(min(remaining, Int64(RequestBody.chunkSize))))
        do throws(SystemError) {
            var bytes = chunk.mutableBytes
            let count = try read(into: &bytes)
            chunk.removeLast(chunk.count - count)
            return count == 0 ? nil : chunk
        } catch {
            throw .file(path: path, reason: error.description)
        }
    }
}
