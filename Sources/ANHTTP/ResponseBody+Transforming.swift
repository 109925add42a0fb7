// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension ResponseBody {
    /// Returns a body whose chunks are transformed when they are read. Chunks that become empty are omitted.
    ///
    /// Nothing is read ahead. To observe a body without changing it, return each chunk unchanged. The limit of
    /// ``collect(upTo:)`` applies to the transformed bytes, and ``ending`` is that of this body.
    ///
    /// - Parameter transform: A function called for each decompressed chunk in order, by the task that reads the body.
    ///   That task also receives the errors that the function throws. Chunks are not empty, and their sizes have no
    ///   meaning.
    public func transforming(_ transform: @escaping @Sendable (Data) throws -> Data) -> ResponseBody {
        var body = ResponseBody(source: TransformedBodySource(base: source, transform: transform))
        body.jsonDecoder = jsonDecoder
        return body
    }
}

/// A source that transforms the chunks of another one.
private struct TransformedBodySource: ResponseBodySource {
    let base: any ResponseBodySource
    let transform: @Sendable (Data) throws -> Data

    func next() async throws -> Data? {
        while let chunk = try await base.next() {
            let changed = try transform(chunk)
            if !changed.isEmpty { return changed }
        }
        return nil
    }

    var ending: ResponseEnding? { base.ending }
    func cancel() { base.cancel() }
    func close() async { await base.close() }
}
