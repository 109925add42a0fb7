// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

// The bytes of a download that arrive in segments. The bytes before the first gap are those of an ordinary download,
// which counts them by `size`; `parts` has those after it. Both are in the record.

extension DownloadFile {
    /// Returns the plan for receiving the rest in segments, after a response has been accepted; `nil` if it must be
    /// received by that response alone.
    func segmentPlan(for head: ResponseHead, _ body: ResponseBody) -> SegmentPlan? {
        guard segmentUse != .refused, job.options.wantsSegments || !parts.isEmpty, mayContinue, device == nil,
            let known, known.isVerifiable(with: job.options.pieceDigests),
            let total = known.totalBytes ?? job.options.pieceDigests?.totalBytes, total > 0,
            job.options.pieceDigests?.totalBytes ?? total == total,
            !body.isReplaced, !head.hasContentCoding,
            known.representation.codings.isEmpty,
            !head.refusesRanges || hasPieceDigests && !mirrors.isEmpty
        else { return nil }
        let done = ByteRanges([0..<size] + parts.ranges)
        let pieces = job.options.pieceDigests
        let plan = SegmentPlan(
            total: total, done: done, minimum: job.options.segmentTuning.minimum, pieceLength: pieces?.pieceLength)
        let isSmall = total - size < 2 * job.options.segmentTuning.minimum
        return parts.isEmpty && pieces == nil && isSmall ? nil : plan
    }

    /// Begins to receive segments of a file with some bytes, of which those of the parts may follow the first ones without
    /// a gap.
    func beginSegments(_ done: ByteRanges) throws(SessionError) {
        // The digests of the program are verified instead of those of the server.
        if job.options.pieceDigests != nil { whole.keep(only: expectedDigest) }
        try restart(0..<0, done: done)
    }

    /// Notes that bytes are wrong, and must be received again.
    ///
    /// - Parameter done: The bytes that are there, without these.
    func restart(_ range: Range<Int64>, done: ByteRanges) throws(SessionError) {
        if whole.size > range.lowerBound, !range.isEmpty { whole = DigestChecks(Array(whole.expected)) }
        do throws(SystemError) {
            try adopt(done)
        } catch {
            throw .file(job.path, error)
        }
    }

    /// Computes the digest of bytes that were written, also after a gap.
    func digest(
        of range: Range<Int64>, by algorithm: ContentDigest.Algorithm, waitUntilRunning: () async throws -> Void
    ) async throws -> ContentDigest {
        let digest = MessageDigest(algorithm.function)
        var bytes = Data(count: 256 << 10)
        var offset = range.lowerBound
        do {
            while offset < range.upperBound {
                var span = bytes.mutableBytes
                let count = try partial?.read(into: &span, in: offset..<range.upperBound) ?? 0
                guard count > 0 else { break }
                digest.update(bytes.bytes.extracting(first: count))
                offset += Int64(count)
                await turns.pass(count)
                try await waitUntilRunning()
            }
        } catch let error as SystemError {
            throw SessionError.file(job.path, error)
        }
        return try ContentDigest(algorithm, digest)
    }

    /// Verifies the pieces of an earlier download, before a server is asked for the rest: it may not wait. Wrong ones are
    /// requested again.
    func verifyKnownPieces(waitUntilRunning: () async throws -> Void) async throws {
        guard var checks = pieces, let data = currentResumeData else { return }
        var done = ByteRanges([0..<data.offset] + parts.ranges)
        checks.begin(done)
        for piece in checks.due(in: 0..<checks.digests.totalBytes, of: done) {
            let range = checks.digests.range(of: piece)
            let found = try await digest(of: range, by: checks.digests.algorithm, waitUntilRunning: waitUntilRunning)
            guard checks.judge(piece, found) != .right else { continue }
            done.remove(range)
            try restart(range, done: done)
            known?.offset = done.prefix
        }
        pieces = checks
        if let data = currentResumeData { planRest(after: data) } else { plan = ResumePlan() }
    }

    /// Verifies the pieces of a complete file that was not received in segments.
    ///
    /// - Throws: ``SessionError/digest(expected:found:path:url:)`` for the first wrong one.
    func verifyPieces(waitUntilRunning: () async throws -> Void) async throws {
        guard let digests = job.options.pieceDigests, pieceState != .verified else { return }
        try checkSize(size)
        for (piece, value) in digests.values.enumerated() {
            let expected = ContentDigest(digests.algorithm, value)
            let found = try await digest(
                of: digests.range(of: piece), by: digests.algorithm, waitUntilRunning: waitUntilRunning)
            guard found == expected else {
                let range = digests.range(of: piece)
                try restart(range, done: ByteRanges([0..<range.lowerBound, range.upperBound..<size]))
                pieceState = .wrong
                throw SessionError.digest(expected: expected, found: found, path: job.path, url: request.url)
            }
        }
    }

    /// Throws if the file on the server has another size than that of the pieces.
    func checkSize(_ found: Int64?) throws(SessionError) {
        guard let expected = job.options.pieceDigests?.totalBytes, let found, found != expected else { return }
        throw .size(expected: expected, found: found, url: request.url)
    }

    /// Writes bytes of a segment, and hashes those before the first gap; flushes a durable download when due.
    ///
    /// - Parameters:
    ///   - done: The bytes that are there, including these.
    ///   - isFromMirror: Whether a mirror has sent the bytes.
    func write(_ bytes: Data, at offset: Int64, done: ByteRanges, isFromMirror: Bool) throws(SessionError) {
        if isFromMirror { known?.hasMirrorBytes = true }
        do throws(SystemError) {
            try partial?.write(bytes.bytes, at: offset)
            received += Int64(bytes.count)
            try adopt(done)
            try hash(bytes, at: offset)
        } catch {
            throw .file(job.path, error)
        }
        try flushIfDue()
    }

    /// Hashes bytes that were written at an offset, if all before them were hashed, and some of those that were there
    /// before: a few each time, so that the transfers go on.
    func hash(_ bytes: Data, at offset: Int64) throws(SystemError) {
        if offset == whole.size { whole.update(bytes.bytes) }
        if !whole.expected.isEmpty { try hashFurther(upTo: 2 * bytes.count) }
    }

    /// Hashes what has not been hashed of a complete file. The digests are compared when it is committed.
    func hashRest(waitUntilRunning: () async throws -> Void) async throws {
        do {
            while !whole.expected.isEmpty, whole.size < size {
                try hashFurther(upTo: 1 << 20)
                await turns.pass(1 << 20)
                try await waitUntilRunning()
            }
        } catch let error as SystemError {
            throw SessionError.file(job.path, error)
        }
    }

    /// Returns a request for all bytes but some, which stay, if the digest of the whole is wrong and bytes of mirrors
    /// may be among the others; `nil` otherwise, and the second time.
    func leaveMirrors(keeping trusted: ByteRanges = ByteRanges()) throws(SessionError) -> FurtherRequest? {
        guard known?.hasMirrorBytes == true, !hasPieceDigests, !whole.isVerified,
            server == .own || server == .mirror && !trusted.isEmpty
        else { return nil }
        mirrors = []
        if server == .own { known?.hasMirrorBytes = nil } else { server = .onlyMirror }
        try beginSegments(trusted)
        whole = DigestChecks([])
        if isDurable { try flush() }
        if let data = currentResumeData { planRest(after: data) } else { plan = ResumePlan() }
        return try followUp()
    }

    private func adopt(_ done: ByteRanges) throws(SystemError) {
        if done.prefix != size { try partial?.rewind(to: done.prefix) }
        parts = done.within(done.prefix..<Int64.max)
    }

    private func hashFurther(upTo limit: Int) throws(SystemError) {
        guard whole.size < size else { return }
        var bytes = Data(count: max(limit, 64 << 10))
        var span = bytes.mutableBytes
        let count = try partial?.read(into: &span, at: whole.size) ?? 0
        whole.update(bytes.bytes.extracting(first: count))
    }
}

extension ResponseHead {
    /// Whether a server states that it sends no ranges.
    var refusesRanges: Bool {
        headers.first(.acceptRanges)?.lowercased() == "none" && status != .partialContent
    }
}
