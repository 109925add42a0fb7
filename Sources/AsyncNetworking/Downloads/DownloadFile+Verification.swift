// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

// Digests of bytes that were written before the digest was known.

extension DownloadFile {
    /// Verifies digests that were not known when the bytes arrived. Those written to a device cannot be read again.
    func verify(
        _ digests: [ContentDigest], from start: Int64, _ waitUntilRunning: () async throws -> Void
    ) async throws {
        guard !digests.isEmpty, device == nil else { return }
        var checks = DigestChecks(digests)
        do {
            try await hash(from: start, waitUntilRunning) { checks.update($0) }
        } catch let error as SystemError {
            throw SessionError.file(job.path, error)
        }
        try checks.verify(job.path, from: request.url)
    }

    /// Passes the bytes of the temporary file after an offset to a function.
    func hash(
        from start: Int64, _ waitUntilRunning: () async throws -> Void, _ update: (borrowing RawSpan) -> Void
    ) async throws {
        var bytes = Data(count: 256 << 10)
        var offset = start
        while offset < size {
            var span = bytes.mutableBytes
            let count = try partial?.read(into: &span, at: offset) ?? 0
            update(bytes.bytes.extracting(first: count))
            offset += Int64(count)
            try await waitUntilRunning()
        }
    }
}
