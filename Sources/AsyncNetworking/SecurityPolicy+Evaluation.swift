// SPDX-License-Identifier: MIT

import ANCurl
public import ANHTTP
public import FoundationEssentials

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
