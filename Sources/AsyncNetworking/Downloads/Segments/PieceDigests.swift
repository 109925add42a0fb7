// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// The digests of the pieces of a file, all of which have the same length except the last one. See
/// ``DownloadOptions/pieceDigests``.
public struct PieceDigests: Hashable, Sendable {
    /// The hash algorithm of all pieces.
    package let algorithm: ContentDigest.Algorithm
    /// The number of bytes of each piece except the last one, which may be shorter.
    package let pieceLength: Int64
    /// The size of the file in bytes.
    package let totalBytes: Int64
    /// The digests of the pieces, in the order of the file.
    package let values: [Data]

    /// Creates the digests of the pieces of a file.
    ///
    /// - Parameters:
    ///   - algorithm: The hash algorithm of all pieces.
    ///   - pieceLength: The number of bytes of each piece except the last one.
    ///   - totalBytes: The size of the file in bytes.
    ///   - values: The digests, in the order of the file.
    /// - Throws: ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` if the length of a piece is not positive, the size is
    ///   negative, there are more or fewer digests than pieces, or the length of one does not match the algorithm.
    public init(
        _ algorithm: ContentDigest.Algorithm, pieceLength: Int64, totalBytes: Int64, values: [Data]
    ) throws(SessionError) {
        guard pieceLength > 0, totalBytes >= 0, values.allSatisfy({ $0.count == algorithm.byteCount }),
            Int64(values.count) == totalBytes / pieceLength + (totalBytes % pieceLength > 0 ? 1 : 0)
        else { throw .transport(TransportError(.invalidRequest(.option("the digests do not fit the pieces")))) }
        (self.algorithm, self.pieceLength, self.totalBytes) = (algorithm, pieceLength, totalBytes)
        self.values = values
    }

    /// The numbers of the pieces that have bytes of a range of the file.
    package func pieces(in range: Range<Int64>) -> Range<Int> {
        let range = range.clamped(to: 0..<totalBytes)
        guard !range.isEmpty else { return 0..<0 }
        return Int(range.lowerBound / pieceLength)..<Int((range.upperBound - 1) / pieceLength) + 1
    }

    /// The bytes of a piece.
    package func range(of piece: Int) -> Range<Int64> {
        let start = Int64(piece) * pieceLength
        return start..<start + min(pieceLength, totalBytes - start)
    }
}

/// The pieces of a file that were verified, and the servers that the bytes of the others came from.
///
/// | a piece whose bytes are all there | consequence |
/// |---|---|
/// | has the digest | it stays |
/// | has another digest, and all its bytes came from one server | that server has lied, and is left |
/// | has another digest, and came from several servers or an earlier transfer | one server must bring all of it |
/// | the same, for the fifth time | the download fails |
package struct PieceChecks: Sendable {
    package let digests: PieceDigests
    private var verified: Set<Int> = []
    /// The servers of the bytes of pieces that were not verified.
    private var sources: [Int: Set<Source>] = [:]
    /// How often a piece of several servers was wrong.
    private var failures: [Int: Int] = [:]

    private static let mostFailures = 5

    private enum Source: Hashable {
        case server(Int)
        case earlierTransfer
    }

    /// The consequence of a piece's digest.
    package enum Verdict: Hashable, Sendable {
        case right
        /// This server has sent wrong bytes.
        case wrong(source: Int)
        /// The bytes of one of several servers are wrong.
        case mixed
        /// There were too many wrong pieces.
        case hopeless
    }

    /// Creates the checks of a file of which some bytes are there.
    package init(_ digests: PieceDigests, done: ByteRanges) {
        self.digests = digests
        begin(done)
    }

    /// Notes which bytes are there when a transfer begins, whose servers have numbers of their own.
    package mutating func begin(_ done: ByteRanges) {
        verified = verified.filter { done.contains(digests.range(of: $0)) }
        sources = [:]
        for range in done.ranges {
            for piece in digests.pieces(in: range) where !verified.contains(piece) {
                sources[piece] = [.earlierTransfer]
            }
        }
    }

    /// Whether all pieces were verified.
    package var isComplete: Bool { verified.count == digests.values.count }

    /// Notes bytes that a server has sent.
    package mutating func receive(_ range: Range<Int64>, from source: Int) {
        for piece in digests.pieces(in: range) {
            verified.remove(piece)
            sources[piece, default: []].insert(.server(source))
        }
    }

    /// Notes that bytes of a piece were given up, which a server has sent.
    package mutating func giveUp(_ range: Range<Int64>, from source: Int) {
        for piece in digests.pieces(in: range) where sources[piece] == [.server(source)] { sources[piece] = nil }
    }

    /// The pieces with bytes of a range that are to be verified, because all their bytes are there.
    package func due(in range: Range<Int64>, of done: ByteRanges) -> [Int] {
        digests.pieces(in: range).filter { !verified.contains($0) && done.contains(digests.range(of: $0)) }
    }

    /// Decides about a piece with a digest.
    package mutating func judge(_ piece: Int, _ digest: ContentDigest) -> Verdict {
        let from = sources.removeValue(forKey: piece) ?? []
        guard digest != ContentDigest(digests.algorithm, digests.values[piece]) else {
            verified.insert(piece)
            return .right
        }
        if from.count == 1, case .server(let source)? = from.first { return .wrong(source: source) }
        failures[piece, default: 0] += 1
        return failures[piece, default: 0] < Self.mostFailures ? .mixed : .hopeless
    }
}
