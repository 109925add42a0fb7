// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension ResponseBody {
    /// A body whose chunks `transform` has changed, each as it is read; a chunk that becomes empty is left out.
    ///
    /// Nothing is read ahead. To watch a body go by, return the chunks as they came.
    ///
    /// - Parameter transform: Called for each chunk, in order; what it throws ends the reading.
    public func transforming(_ transform: @escaping @Sendable (Data) throws -> Data) -> ResponseBody {
        ResponseBody(source: TransformedBodySource(base: source, transform: transform))
    }
}

/// Changes the chunks of another source.
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
}
