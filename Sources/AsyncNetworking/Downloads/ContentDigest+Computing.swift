// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials

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

    private init(_ algorithm: Algorithm, _ digest: MessageDigest) throws(SessionError) {
        guard let value = digest.value else { throw .digestNotComputed }
        self.init(algorithm, Data(value))
    }
}

extension SessionError {
    /// The error of a digest that OpenSSL cannot compute.
    static let digestNotComputed = SessionError.transport(
        TransportError(.internalInconsistency("OpenSSL could not compute a digest.")))
}
