// SPDX-License-Identifier: MIT

import ANHTTP
import COpenSSL
import FoundationEssentials

/// A verifier of the certificates of one handshake against a policy's anchors, at most once for each kind of anchor.
/// See X509_verify_cert(3).
///
/// It uses its own stores: libcurl's is shared between contexts and, depending on its version, filled later.
@safe final class ChainVerifier {
    private let presented: OpaquePointer?
    private let leaf: OpaquePointer?
    private let security: ConnectionSecurity
    /// The name to validate; `nil` if none is validated.
    private let name: HostName?
    /// The OpenSSL security level of the connection, which sets the required key strength. See
    /// SSL_get_security_level(3).
    private let level: Int32
    private var runs: [SecurityPolicy.Anchors: Run] = [:]

    /// Creates a verifier of the server's certificates in `context`, which must outlive it.
    init(_ context: OpaquePointer, _ security: ConnectionSecurity, name: HostName?, level: Int32) {
        unsafe presented = unsafe X509_STORE_CTX_get0_untrusted(context)
        unsafe leaf = unsafe X509_STORE_CTX_get0_cert(context)
        self.security = security
        self.name = name
        self.level = level
    }

    /// Builds a valid chain to the given anchors, or returns the reason for its absence.
    func verify(_ anchors: SecurityPolicy.Anchors) -> SecurityPolicy.ChainResult {
        let run = run(anchors)
        guard run.code == X509_V_OK else {
            return SecurityPolicy.ChainResult(failure: TransportError.TLSFailure(verifyResult: run.code))
        }
        let needsKeys = security.policy.pinningMode == .publicKey
        return SecurityPolicy.ChainResult(
            keys: unsafe needsKeys ? certificates(in: run.chain).compactMap { unsafe PublicKeyPin(of: $0) } : [])
    }

    /// Returns the attempt for the given anchors, verifying at the first call.
    private func run(_ anchors: SecurityPolicy.Anchors) -> Run {
        if let run = runs[anchors] { return run }
        let run: Run
        switch anchors {
        case .trustRoots: run = unsafe verify(against: security.roots)
        case .pinnedCertificates: run = security.pinned.map { unsafe verify(against: $0) } ?? .failed
        case .pinnedKeys: run = verifyAgainstPinnedKeys()
        }
        runs[anchors] = run
        return run
    }

    /// Returns the server's certificates, with the result of their verification.
    func trust(_ failure: TransportError.TLSFailure?) -> ServerTrust {
        var trust = unsafe ServerTrust(
            host: name?.text ?? "", date: security.now, presented: ServerTrust.Certificate.all(in: presented),
            chain: ServerTrust.Certificate.all(in: validRun?.chain), failure: failure)
        trust.trustRoots = security.trustRoots
        return trust
    }

    /// Sets the result of the verification in OpenSSL, which stores it and sends it to the server, and the chain.
    func conclude(_ context: OpaquePointer, isRefused: Bool) {
        if isRefused {
            let code = allRuns.first { $0.code != X509_V_OK }?.code ?? X509_V_ERR_APPLICATION_VERIFICATION
            unsafe X509_STORE_CTX_set_error(context, code)
        } else {
            unsafe X509_STORE_CTX_set_error(context, X509_V_OK)
            if let chain = unsafe validRun?.chain {
                unsafe X509_STORE_CTX_set0_verified_chain(context, X509_chain_up_ref(chain))
            }
        }
    }

    private var validRun: Run? { allRuns.first { $0.code == X509_V_OK } }

    /// The completed attempts, with the one against trusted authorities first.
    private var allRuns: [Run] { SecurityPolicy.Anchors.allCases.compactMap { runs[$0] } }

    /// One attempt to build a chain.
    @safe private final class Run {
        /// The result; see X509_STORE_CTX_get_error(3).
        let code: Int32
        /// The chain as far as it was built.
        let chain: OpaquePointer?

        init(code: Int32, chain: OpaquePointer? = nil) {
            self.code = code
            unsafe self.chain = unsafe chain
        }

        /// An attempt that failed before verification.
        static var failed: Run { unsafe Run(code: X509_V_ERR_UNSPECIFIED) }

        deinit {
            unsafe copenssl_chain_free(chain)
        }
    }

    /// Verifies against those of the server's certificates whose keys are pinned: each issuer in the chain must be one
    /// of them, or be issued by them.
    private func verifyAgainstPinnedKeys() -> Run {
        guard let anchors = unsafe OPENSSL_sk_new_null() else { return .failed }
        defer { unsafe OPENSSL_sk_free(anchors) }
        unsafe certificates(in: presented).forEach { certificate in
            guard let key = unsafe PublicKeyPin(of: certificate), security.pinnedKeys.contains(key) else { return }
            unsafe _ = OPENSSL_sk_push(anchors, UnsafeRawPointer(certificate))
        }
        return unsafe verify(against: security.roots) { context in
            unsafe X509_STORE_CTX_set0_trusted_stack(context, anchors)
            // The flag that ignores dates has no effect beside a time of verification, and applies to revocation lists.
            unsafe X509_STORE_CTX_set_verify_cb(context) { isValid, context in
                switch unsafe X509_STORE_CTX_get_error(context) {
                case X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID:
                    unsafe X509_STORE_CTX_set_error(context, X509_V_OK)
                    return 1
                default: return unsafe TrustStore.review(isValid, context)
                }
            }
        }
    }

    /// Verifies the chain up to a self-signed certificate, so that the pins and revocation lists of every authority count. A
    /// chain that ends at the first certificate in the store, which is trusted, too, is valid if that one is not, unless
    /// for revocation, or for a reason that kept OpenSSL from looking at the revocation lists.
    private func verify(against store: TrustStore, _ adjust: (OpaquePointer) -> Void = { _ in }) -> Run {
        let complete = unsafe attempt(against: store, flags: 0, adjust)
        guard complete.code != X509_V_OK, !Self.revocationCodes.contains(complete.code) else { return complete }
        let hasNoEnd =
            switch TransportError.TLSFailure(verifyResult: complete.code) {
            case .unknownAuthority, .selfSigned: true
            default: false
            }
        guard hasNoEnd || security.policy.revocationLists == nil || Self.lateCodes.contains(complete.code) else {
            return complete
        }
        let partial = unsafe attempt(against: store, flags: COPENSSL_V_FLAG_PARTIAL_CHAIN, adjust)
        // Without an end of the chain, nothing else was checked.
        return partial.code == X509_V_OK || hasNoEnd ? partial : complete
    }

    /// The results of what OpenSSL checks after revocation.
    private static let lateCodes: Set<Int32> = [
        X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_SIGNATURE_FAILURE,
    ]

    /// The results of a check of revocation. See X509_STORE_CTX_get_error(3).
    private static let revocationCodes: Set<Int32> = [
        X509_V_ERR_CERT_REVOKED, X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER,
        X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE, X509_V_ERR_CRL_SIGNATURE_FAILURE, X509_V_ERR_CRL_NOT_YET_VALID,
        X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD,
        X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD, X509_V_ERR_KEYUSAGE_NO_CRL_SIGN,
        X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION, X509_V_ERR_DIFFERENT_CRL_SCOPE,
        X509_V_ERR_CRL_PATH_VALIDATION_ERROR,
    ]

    private func attempt(
        against store: TrustStore, flags: UInt, _ adjust: (OpaquePointer) -> Void
    ) -> Run {
        guard let context = unsafe X509_STORE_CTX_new() else { return .failed }
        defer { unsafe X509_STORE_CTX_free(context) }
        guard unsafe X509_STORE_CTX_init(context, store.raw, leaf, presented) == 1 else {
            return .failed
        }
        let parameters = unsafe X509_STORE_CTX_get0_param(context)
        unsafe _ = X509_VERIFY_PARAM_set_flags(parameters, flags)
        unsafe X509_VERIFY_PARAM_set_auth_level(parameters, level)
        if security.policy.validatesDomainName {
            guard unsafe X509_STORE_CTX_set_default(context, "ssl_server") == 1, unsafe setName(parameters) else {
                return unsafe Run(code: X509_V_ERR_HOSTNAME_MISMATCH)
            }
        }
        unsafe adjust(context)
        let isValid = unsafe X509_verify_cert(context) == 1
        let code = unsafe X509_STORE_CTX_get_error(context)
        let chain = unsafe X509_STORE_CTX_get1_chain(context)
        return unsafe Run(code: isValid ? X509_V_OK : code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code, chain: chain)
    }

    /// Sets the name to validate. A wildcard matches a whole label (RFC 9525 §6.3), and the common name is used only if
    /// there are no alternative names.
    private func setName(_ parameters: OpaquePointer?) -> Bool {
        guard let name else { return true }
        // OpenSSL would compare what stands before it.
        guard !name.text.utf8.contains(0) else { return false }
        if name.isAddress { return unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, name.text) == 1 }
        var flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS
        // OpenSSL itself ignores only alternative names of hosts.
        if unsafe X509_get_ext_by_NID(leaf, NID_subject_alt_name, -1) >= 0 {
            flags |= X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
        }
        unsafe X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(flags))
        // With a dot at its beginning, OpenSSL would accept any host below it.
        guard !name.text.isEmpty, !name.text.hasPrefix(".") else { return false }
        return unsafe X509_VERIFY_PARAM_set1_host(parameters, name.text, 0) == 1
    }
}

extension TransportError.TLSFailure {
    /// Creates the failure for a verification result; see X509_STORE_CTX_get_error(3).
    init(verifyResult: Int32) {
        switch verifyResult {
        case X509_V_ERR_CERT_HAS_EXPIRED: self = .certificateExpired
        case X509_V_ERR_CERT_NOT_YET_VALID: self = .certificateNotYetValid
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: self = .selfSigned
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
            self = .unknownAuthority
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: self = .wrongHost
        case X509_V_ERR_CERT_REVOKED: self = .revoked
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_CRL_NOT_YET_VALID:
            self = .revocationUnknown
        case X509_V_ERR_INVALID_PURPOSE: self = .wrongPurpose
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK: self = .weakKey
        case X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION: self = .nameConstraints
        default: self = .untrusted(verifyResult: Int(verifyResult))
        }
    }
}
