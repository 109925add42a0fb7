// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import COpenSSL
import FoundationEssentials

/// A store of trust anchors, with the certificate revocation lists. See X509_STORE_new(3).
///
/// Loading the system's store takes about 20 ms, so each store is created once and used for all handshakes; libcurl
/// would load it for each one.
@safe final class TrustStore: Sendable {
    /// Guarded by OpenSSL with its own lock.
    nonisolated(unsafe) let raw: OpaquePointer

    /// Creates a store of trusted authorities.
    convenience init(_ roots: TrustRoots, _ policy: SecurityPolicy) throws(SecurityFailure) {
        try self.init(policy: policy)
        switch roots {
        case .system:
            try loadSystem()
        case .file(let path):
            guard let bytes = try? FileOrData.file(path).read() else { throw .init(failure: .badTrustRoots) }
            try add(certificatesIn: bytes)
        case .pem(let bytes):
            try add(certificatesIn: bytes)
        case .systemAnd(let bytes):
            try loadSystem()
            try add(certificatesIn: bytes)
        }
    }

    /// Creates a store of only the policy's pinned certificates. The lists were used with the trusted authorities, unless
    /// the policy accepts certificates without any: the issuer of a pinned certificate, which signs its list, may be
    /// unknown here.
    convenience init(pinnedBy policy: SecurityPolicy) throws(SecurityFailure) {
        var policy = policy
        if !policy.allowsInvalidCertificates { policy.revocationLists = nil }
        try self.init(policy: policy)
        try add(policy.pinnedCertificates, else: .badSecurityPolicy(.malformedCertificate))
    }

    private init(policy: SecurityPolicy) throws(SecurityFailure) {
        guard let raw = unsafe X509_STORE_new() else { throw .init(failure: .badTrustRoots) }
        unsafe self.raw = unsafe raw
        let parameters = unsafe X509_STORE_get0_param(raw)
        if let time = policy.verificationTime {
            unsafe X509_VERIFY_PARAM_set_time(parameters, time_t(clamping: time))
        }
        guard let lists = policy.revocationLists else { return }
        try add(lists)
        let flags = COPENSSL_V_FLAG_CRL_CHECK | COPENSSL_V_FLAG_CRL_CHECK_ALL
        unsafe _ = X509_VERIFY_PARAM_set_flags(parameters, flags)
        // Revocation lists are not required for the authorities themselves. See X509_STORE_set_verify_cb(3).
        unsafe X509_STORE_set_verify_cb(raw) { unsafe TrustStore.review($0, $1) }
    }

    /// Returns the result for a certificate, as a callback of a verification.
    static func review(_ isValid: Int32, _ context: OpaquePointer?) -> Int32 {
        guard isValid == 0, unsafe X509_STORE_CTX_get_error(context) == X509_V_ERR_UNABLE_TO_GET_CRL,
            unsafe X509_STORE_CTX_get_error_depth(context) > 0
        else { return isValid }
        unsafe X509_STORE_CTX_set_error(context, X509_V_OK)
        return 1
    }

    deinit {
        unsafe X509_STORE_free(raw)
    }

    private func loadSystem() throws(SecurityFailure) {
        let system = SystemRoots.current
        if let file = system.file, unsafe X509_STORE_load_file(raw, file) != 1 { throw .init(failure: .badTrustRoots) }
        // The directory's files are read when a chain needs them.
        if let directory = system.directory { unsafe X509_STORE_load_path(raw, directory) }
    }

    private func add(certificatesIn roots: Data) throws(SecurityFailure) {
        guard let certificates = try? PEM.certificates(in: roots) else { throw .init(failure: .badTrustRoots) }
        try add(certificates, else: .badTrustRoots)
    }

    private func add(
        _ certificates: [Data], else failure: TransportError.TLSFailure
    ) throws(SecurityFailure) {
        guard !certificates.isEmpty else { throw .init(failure: failure) }
        for der in certificates {
            let isAdded = unsafe der.withUnsafeBytes { bytes in
                guard let certificate = unsafe X509Handle(der: bytes) else { return false }
                return unsafe X509_STORE_add_cert(raw, certificate.raw) == 1
            }
            guard isAdded else { throw .init(failure: failure) }
        }
    }

    private func add(_ lists: FileOrData) throws(SecurityFailure) {
        let bytes: Data
        do throws(FileOrData.ReadError) {
            bytes = try lists.read()
        } catch {
            throw .init(failure: .badSecurityPolicy(.unreadable(path: error.path, reason: error.reason)))
        }
        guard let found = try? PEM.revocationLists(in: bytes), !found.isEmpty, found.allSatisfy(addList) else {
            throw .init(failure: .badSecurityPolicy(.revocationLists))
        }
    }

    private func addList(_ der: Data) -> Bool {
        unsafe der.withUnsafeBytes { bytes in
            var start = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            guard unsafe start != nil, let list = unsafe d2i_X509_CRL(nil, &start, bytes.count) else { return false }
            defer { unsafe X509_CRL_free(list) }
            return unsafe bytes.isEnd(start) && X509_STORE_add_crl(raw, list) == 1
        }
    }
}

/// The locations of the system's trusted authorities.
struct SystemRoots {
    /// The file that contains all authorities.
    let file: String?
    /// The directory with one file for each authority, named by hash.
    let directory: String?

    /// The locations given by `SSL_CERT_FILE` and `SSL_CERT_DIR`, as for OpenSSL's own tools, or else libcurl's
    /// compiled-in ones.
    static let current: SystemRoots = {
        let environment = ProcessInfo.processInfo.environment
        let (file, directory) = (environment["SSL_CERT_FILE"], environment["SSL_CERT_DIR"])
        if file != nil || directory != nil { return SystemRoots(file: file, directory: directory) }
        guard let handle = try? EasyHandle() else { return SystemRoots(file: nil, directory: nil) }
        let built = (handle.string(CURLINFO_CAINFO), handle.string(CURLINFO_CAPATH))
        return SystemRoots(
            file: built.0.isEmpty ? nil : built.0, directory: built.1.isEmpty ? nil : built.1)
    }()
}

extension TrustRoots {
    /// The paths of the files from which the roots are read. Directories are not included.
    var paths: [String] {
        switch self {
        case .system, .systemAnd: [SystemRoots.current.file].compactMap(\.self)
        case .file(let path): [path]
        case .pem: []
        }
    }
}

extension Int {
    /// Creates the number of whole seconds since 1970, rounded down; a date that is out of range is clamped.
    init(clamping date: Date) {
        self = Int(exactly: date.timeIntervalSince1970.rounded(.down)) ?? (date < .now ? 0 : Int(Int32.max))
    }
}
