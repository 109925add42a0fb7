// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import COpenSSL
package import FoundationEssentials

/// Evaluates certificates outside of a connection, by the same rules and with the same verifier as in handshakes.
///
/// It is in this module because the module links OpenSSL; the session module exposes it publicly.
package enum ChainEvaluator {
    /// The security settings of recent policies, cached because loading the system's authorities takes about 20 ms.
    private static let known = Lock<[ConnectionSecurity.Settings: ConnectionSecurity]>([:])
    private static let maximumCount = 16

    /// Evaluates a server's certificates.
    ///
    /// - Parameters:
    ///   - certificates: In DER: the server certificate first, then the intermediates.
    ///   - host: The name or address that the server certificate must match; `nil` to skip this check.
    ///   - policy: The rules; its observer is not called.
    package static func evaluate(
        _ certificates: [Data], for host: String?, by policy: SecurityPolicy
    ) -> TrustResult {
        OpenSSLErrors.contained {
            let name = host.map { HostName($0) }
            do throws(SecurityFailure) {
                return evaluate(try Stack(certificates), name, try security(for: policy), policy)
            } catch {
                let trust = ServerTrust(
                    host: name?.text ?? "", date: policy.verificationTime ?? .now, presented: [],
                    failure: error.failure ?? .unreadable)
                return TrustResult(trust: trust, isRefused: true)
            }
        }
    }

    /// Whether the data is exactly one certificate in DER.
    package static func isCertificate(_ der: Data) -> Bool {
        OpenSSLErrors.contained { unsafe der.withUnsafeBytes { unsafe X509Handle(der: $0) != nil } }
    }

    private static func evaluate(
        _ stack: borrowing Stack, _ name: HostName?, _ security: ConnectionSecurity, _ policy: SecurityPolicy
    ) -> TrustResult {
        guard let verifier = stack.verifier(security, name: name) else {
            let trust = ServerTrust(host: name?.text ?? "", date: security.now, presented: [], failure: .unreadable)
            return TrustResult(trust: trust, isRefused: true)
        }
        var evaluation = policy.evaluate(
            host: name?.text, expectedKeys: security.pinnedKeys, at: security.now, verify: verifier.verify,
            trust: verifier.trust)
        if policy.stapling == .required, evaluation.failure == nil {
            evaluation.failure = .stapleMissing
            evaluation.isRefused = !policy.isAudited
        }
        return policy.result(evaluation, verifier.trust(evaluation.failure))
    }

    /// Returns the security settings for a policy, cached until the files from which they were read change.
    private static func security(for policy: SecurityPolicy) throws(SecurityFailure) -> ConnectionSecurity {
        var options = TLSOptions()
        options.policy = policy
        // These are used after the verification, and would make the settings of each policy distinct.
        options.policy.evaluator = nil
        options.policy.observer = nil
        let settings = ConnectionSecurity.Settings(options, host: HostName(""))
        if let security = known.withLock({ $0[settings] }), security.isCurrent { return security }
        let made = try ConnectionSecurity(settings)
        known.withLock { known in
            if known.count >= maximumCount { known.removeAll() }
            known[settings] = made
        }
        return made
    }
}

/// A stack of certificates in OpenSSL's representation.
@safe private struct Stack: ~Copyable {
    private let raw: OpaquePointer
    private let context: OpaquePointer

    /// Parses certificates in DER.
    init(_ certificates: [Data]) throws(SecurityFailure) {
        guard let raw = unsafe OPENSSL_sk_new_null() else { throw SecurityFailure(failure: .unreadable) }
        for der in certificates {
            let certificate = unsafe der.withUnsafeBytes { unsafe X509Handle(der: $0)?.release() }
            guard let certificate = unsafe certificate else {
                unsafe copenssl_chain_free(raw)
                throw SecurityFailure(failure: .unreadable)
            }
            unsafe _ = OPENSSL_sk_push(raw, UnsafeRawPointer(certificate))
        }
        guard !certificates.isEmpty, let context = unsafe X509_STORE_CTX_new() else {
            unsafe copenssl_chain_free(raw)
            throw SecurityFailure(failure: .unreadable)
        }
        unsafe self.raw = unsafe raw
        unsafe self.context = unsafe context
    }

    deinit {
        unsafe X509_STORE_CTX_free(context)
        unsafe copenssl_chain_free(raw)
    }

    /// Creates a verifier of the certificates, which must not outlive them; `nil` if memory is exhausted.
    func verifier(_ security: ConnectionSecurity, name: HostName?) -> ChainVerifier? {
        let leaf = unsafe OpaquePointer(OPENSSL_sk_value(raw, 0))
        guard unsafe X509_STORE_CTX_init(context, security.roots.raw, leaf, raw) == 1 else { return nil }
        return unsafe ChainVerifier(context, security, name: name, level: Self.level)
    }

    /// OpenSSL's default security level, which sets the required key strength. See SSL_CTX_get_security_level(3).
    private static let level: Int32 = {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { return 1 }
        defer { unsafe SSL_CTX_free(context) }
        return unsafe SSL_CTX_get_security_level(context)
    }()
}

extension TransportError.TLSFailure {
    /// The failure of a chain that is empty or contains a certificate that cannot be parsed.
    fileprivate static let unreadable = TransportError.TLSFailure.untrusted(verifyResult: Int(X509_V_ERR_UNSPECIFIED))
}
