// SPDX-License-Identifier: MIT

import ANCurl
public import ANHTTP
public import FoundationEssentials

extension SecurityPolicy {
    /// Returns the certificates of a file or data in DER form, for
    /// ``ANHTTP/SecurityPolicy/pinning(certificates:mode:until:)``.
    ///
    /// - Parameter source: The file or data: any number of PEM certificates (RFC 7468), or one DER certificate. Lines
    ///   of other text and other kinds of PEM blocks are ignored. A file is read once, by the calling thread.
    /// - Returns: The certificates in the order of the source, at least one; their content is not checked.
    /// - Throws: ``ANHTTP/SecurityPolicy/ConfigurationError`` if the file cannot be read, a block is damaged or
    ///   incomplete, or there is no certificate.
    public static func certificates(in source: FileOrData) throws(ConfigurationError) -> [Data] {
        let bytes: Data
        do throws(FileOrData.ReadError) {
            bytes = try source.read()
        } catch {
            throw .unreadable(path: error.path, reason: error.reason)
        }
        let certificates: [Data]
        do throws(PEM.Malformed) {
            certificates = try PEM.certificates(in: bytes)
        } catch {
            throw .unreadable(path: source.label, reason: "\(error)")
        }
        guard !certificates.isEmpty else { throw .noCertificate(source.label) }
        return certificates
    }

    /// Returns the certificates of all files of a directory, in DER form and in the order of the file names.
    ///
    /// - Parameter path: The directory. The files must have the extension `.cer`, `.crt`, `.der` or `.pem`, in lower
    ///   case, and contain PEM certificates or one DER certificate each; others are ignored. Subdirectories are not
    ///   searched, but one with such an extension counts as a file that cannot be read.
    /// - Returns: The certificates, at least one; their content is not checked.
    /// - Throws: ``ANHTTP/SecurityPolicy/ConfigurationError`` if the directory or a file with one of the extensions
    ///   cannot be read, if such a file is damaged or contains no certificate, or if the directory has no such file.
    public static func certificates(inDirectory path: String) throws(ConfigurationError) -> [Data] {
        var certificates: [Data] = []
        for file in try certificateFiles(inDirectory: path) { certificates += try Self.certificates(in: .file(file)) }
        guard !certificates.isEmpty else { throw .noCertificate(path) }
        return certificates
    }

    /// Returns the paths of a directory's files with the extension of a certificate, in the order of their names.
    ///
    /// - Throws: ``ANHTTP/SecurityPolicy/ConfigurationError`` if the directory cannot be read.
    private static func certificateFiles(inDirectory path: String) throws(ConfigurationError) -> [String] {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            throw .unreadable(path: path, reason: "it is not a readable directory")
        }
        return names.sorted().filter { [".cer", ".crt", ".der", ".pem"].contains(where: $0.hasSuffix) }
            .map { path + "/" + $0 }
    }

    /// Returns the certificates, in DER, of all files that ``certificates(inDirectory:)`` would read, skipping files
    /// that cannot be read and those that are not certificates.
    package static func readableCertificates(inDirectory path: String) -> [Data] {
        let files = (try? certificateFiles(inDirectory: path)) ?? []
        return files.flatMap { (try? certificates(in: .file($0))) ?? [] }.filter(ChainEvaluator.isCertificate)
    }
}

extension SecurityPolicy {
    /// Evaluates a certificate chain without a connection, by this policy's rules and with the verification of a TLS
    /// handshake.
    ///
    /// A chain that must be valid must end at the ``ANHTTP/SecurityPolicy/trustRoots``, or at the system's if that is
    /// `nil`, at the ``ANHTTP/SecurityPolicy/verificationTime``, or at the current time if that is `nil`. The
    /// ``ANHTTP/SecurityPolicy/evaluator`` is called, on the calling thread, and decides; the observer is not called. A
    /// policy that requires a stapled OCSP response refuses a chain that is otherwise accepted, because no server can
    /// present one here, unless the policy is ``ANHTTP/SecurityPolicy/isAudited``.
    ///
    /// The calling thread reads the trusted certificates from their files when a policy is evaluated for the first
    /// time, and again after the files have changed.
    ///
    /// ```swift
    /// var policy = SecurityPolicy()
    /// policy.trustRoots = .pem(companyAuthority)
    /// let result = policy.evaluate([certificate, intermediate], for: "api.example.com")
    /// ```
    ///
    /// - Parameters:
    ///   - certificates: The certificates in DER: the server's own first, followed by any intermediate certificates.
    ///   - host: The name or address that the server's certificate must be valid for, if
    ///     ``ANHTTP/SecurityPolicy/validatesDomainName`` is `true`; `nil` skips that check.
    /// - Returns: The result. It is a refusal if there are no certificates, if one cannot be parsed, or if the trusted
    ///   certificates, revocation lists or pinned certificates of the policy cannot be used.
    public func evaluate(_ certificates: [Data], for host: String?) -> TrustResult {
        ChainEvaluator.evaluate(certificates, for: host, by: self)
    }
}
