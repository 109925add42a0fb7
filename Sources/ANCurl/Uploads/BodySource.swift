// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import FoundationEssentials

/// A request's body as a sequence of chunks: of at most 256 KiB, or as yielded by the program's own sequence.
package struct BodySource: Sendable {
    /// The length in bytes; `nil` if it is unknown.
    package let length: Int64?
    /// Whether the body can be read a second time.
    package let isReplayable: Bool
    /// Creates a reader for a single pass over the body.
    package let makeReader: @Sendable () throws -> BodyReader

    /// Creates the source of a body. The size of a file is read at this point.
    ///
    /// - Throws: ``TransportError/Reason/requestBody(_:)`` for a file that cannot be opened.
    package init(_ body: RequestBody) throws(TransportError) {
        switch body.content {
        case .none:
            self.init(length: 0) { BodyReader { nil } }
        case .bytes(let data):
            self.init(length: Int64(data.count)) {
                var rest = data
                return BodyReader {
                    guard !rest.isEmpty else { return nil }
                    defer { rest = rest.dropFirst(Self.chunkSize) }
                    return rest.prefix(Self.chunkSize)
                }
            }
        case .file(let path):
            let size = try RegularFile.open(path) {
                TransportError(.requestBody(.file(path: $0, reason: $1)))
            }.size
            self.init(length: size) {
                let file = try RegularFile.open(path, TransportError.RequestBodyFailure.file)
                return BodyReader { try file.nextChunk(of: path) }
            }
        case .stream(let length, let isReplayable, let makeReader):
            self.init(length: length, isReplayable: isReplayable, makeReader: makeReader)
        }
    }

    private init(length: Int64?, isReplayable: Bool = true, makeReader: @escaping @Sendable () throws -> BodyReader) {
        self.length = length
        self.isReplayable = isReplayable
        self.makeReader = makeReader
    }

    /// The maximum size of a chunk in bytes.
    package static let chunkSize = 256 << 10
}

extension RegularFile {
    /// Returns the next bytes of the body; `nil` at the end. The pump detects a premature end by the length.
    fileprivate func nextChunk(of path: String) throws(TransportError.RequestBodyFailure) -> Data? {
        var chunk = Data(count: Int(min(remaining, Int64(BodySource.chunkSize))))
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
