// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials

/// The expected digests of a sequence of bytes, and their running computation.
struct DigestChecks {
    private var checks: [(expected: ContentDigest, digest: MessageDigest)]
    /// The number of bytes hashed so far.
    private(set) var size: Int64 = 0

    /// Creates checks of the announced digests and the expected one, before the first byte.
    init(_ announced: [ContentDigest], and expected: ContentDigest? = nil) {
        checks = Set(announced + (expected.map { [$0] } ?? [])).map { ($0, MessageDigest($0.algorithm.function)) }
    }

    /// The expected digests.
    var expected: Set<ContentDigest> { Set(checks.map(\.expected)) }

    /// Ends all checks but that of one digest, which is among them if it is not `nil`.
    mutating func keep(only expected: ContentDigest?) {
        checks.removeAll { $0.expected != expected }
    }

    /// Hashes further bytes.
    mutating func update(_ bytes: borrowing RawSpan) {
        size += Int64(bytes.byteCount)
        for check in checks { check.digest.update(bytes) }
    }

    /// Whether the digests of all bytes so far are the expected ones.
    var isVerified: Bool {
        checks.allSatisfy { check in check.digest.value.map { check.expected.value.elementsEqual($0) } ?? false }
    }

    /// Compares the digests of all bytes so far with the expected ones.
    ///
    /// - Throws: ``SessionError/digest(expected:found:path:url:)`` for the first one that differs, with the path and
    ///   the URL of the download.
    func verify(_ path: String, from url: URL) throws(SessionError) {
        for (expected, digest) in checks {
            guard let value = digest.value else { throw .digestNotComputed }
            guard expected.value.elementsEqual(value) else {
                throw .digest(
                    expected: expected, found: ContentDigest(expected.algorithm, Data(value)), path: path, url: url)
            }
        }
    }
}

extension ContentDigest.Algorithm {
    /// The function that computes digests by the algorithm.
    var function: MessageDigest.Algorithm {
        switch self {
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }
}

extension ContentDigest {
    /// Computes the digest of bytes.
    ///
    /// - Parameters:
    ///   - data: The bytes, which may be empty.
    ///   - algorithm: The hash algorithm; SHA-256 by default.
    /// - Throws: ``AsyncNetworking/SessionError/transport(_:)`` if OpenSSL fails, for example for lack of memory.
    public init(of data: Data, by algorithm: Algorithm = .sha256) throws(SessionError) {
        let digest = MessageDigest(algorithm.function)
        digest.update(data.bytes)
        try self.init(algorithm, digest)
    }

    /// Computes the digest of a file. The calling thread reads the whole file, up to the size that it had when it was
    /// opened, and is blocked meanwhile.
    ///
    /// - Parameters:
    ///   - path: The path of the file; symbolic links are followed.
    ///   - algorithm: The hash algorithm; SHA-256 by default.
    /// - Throws: ``AsyncNetworking/SessionError/file(_:)`` if the file cannot be read, or is not a regular file;
    ///   ``AsyncNetworking/SessionError/transport(_:)`` if OpenSSL fails, for example for lack of memory.
    public init(ofFile path: String, by algorithm: Algorithm = .sha256) throws(SessionError) {
        let digest = MessageDigest(algorithm.function)
        do throws(SystemError) {
            let file = try RegularFile(path: path)
            var buffer = Data(count: 256 << 10)
            while true {
                var span = buffer.mutableBytes
                let count = try file.read(into: &span)
                guard count > 0 else { break }
                digest.update(buffer.bytes.extracting(first: count))
            }
        } catch {
            throw .file(path, error)
        }
        try self.init(algorithm, digest)
    }

    init(_ algorithm: Algorithm, _ digest: MessageDigest) throws(SessionError) {
        guard let value = digest.value else { throw .digestNotComputed }
        self.init(algorithm, Data(value))
    }
}

extension SessionError {
    /// The error of a digest that OpenSSL cannot compute.
    static let digestNotComputed = SessionError.transport(
        TransportError(.internalInconsistency("OpenSSL could not compute a digest.")))
}
