// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import COpenSSL
package import FoundationEssentials

/// Evaluates certificates that no connection has shown, by the rules and with the verifier of handshakes.
///
/// It is here because OpenSSL is; the session's module gives it to users.
package enum ChainEvaluator {
    /// The stores of the latest policies: reading the system's authorities takes some 20 ms.
    private static let known = Lock<[ConnectionSecurity.Settings: ConnectionSecurity]>([:])
    private static let maximumCount = 16

    /// Evaluates a server's certificates.
    ///
    /// - Parameters:
    ///   - certificates: In DER, the server's own first, then those that lead to an authority.
    ///   - host: The name or address that the server's must be for; `nil` validates none.
    ///   - policy: The rules; its observer is not told.
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

    /// Whether the bytes are one certificate in DER.
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
            evaluation.isRefused = policy.enforcement == .enforced
        }
        return TrustResult(
            trust: verifier.trust(evaluation.failure), isRefused: evaluation.isRefused,
            matchedPin: evaluation.matchedPin,
            usesBackupPin: evaluation.matchedPin.map { policy.backupPins.contains($0) && !policy.pins.contains($0) }
                ?? false)
    }

    /// What the rules are applied with, made once as long as its files stay as they are.
    private static func security(for policy: SecurityPolicy) throws(SecurityFailure) -> ConnectionSecurity {
        var options = TLSOptions()
        options.policy = policy
        // They decide after the verification, and would make each policy another one.
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

/// Certificates as OpenSSL has them.
@safe private struct Stack: ~Copyable {
    private let raw: OpaquePointer
    private let context: OpaquePointer

    /// Reads certificates in DER.
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

    /// A verifier of the certificates, which uses them as long as they are; `nil` without memory.
    func verifier(_ security: ConnectionSecurity, name: HostName?) -> ChainVerifier? {
        let leaf = unsafe OpaquePointer(OPENSSL_sk_value(raw, 0))
        guard unsafe X509_STORE_CTX_init(context, security.roots.raw, leaf, raw) == 1 else { return nil }
        return unsafe ChainVerifier(context, security, name: name, level: Self.level)
    }

    /// The strength that OpenSSL asks of keys unless told otherwise. See SSL_CTX_get_security_level(3).
    private static let level: Int32 = {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { return 1 }
        defer { unsafe SSL_CTX_free(context) }
        return unsafe SSL_CTX_get_security_level(context)
    }()
}

extension TransportError.TLSFailure {
    /// The failure of a chain without certificates, or with one that cannot be read.
    fileprivate static let unreadable = TransportError.TLSFailure.untrusted(verifyResult: Int(X509_V_ERR_UNSPECIFIED))
}
