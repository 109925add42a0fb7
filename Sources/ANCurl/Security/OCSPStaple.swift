// SPDX-License-Identifier: MIT

import ANHTTP
import COpenSSL
import FoundationEssentials

/// The OCSP response that a server staples to its certificate. See RFC 6960 and OCSP_basic_verify(3).
enum OCSPStaple {
    /// Returns the reason for which a session's stapled response, or its absence, violates the policy; `nil` if it does
    /// not.
    static func failure(of session: OpaquePointer, _ security: ConnectionSecurity) -> TransportError.TLSFailure? {
        var bytes: UnsafePointer<UInt8>?
        let count = unsafe copenssl_staple(session, &bytes)
        guard unsafe bytes != nil, count > 0 else {
            return security.policy.stapling == .required ? .stapleMissing : nil
        }
        guard let response = unsafe d2i_OCSP_RESPONSE(nil, &bytes, count) else { return .badStaple("it is malformed") }
        defer { unsafe OCSP_RESPONSE_free(response) }
        guard unsafe OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL,
            let basic = unsafe OCSP_response_get1_basic(response)
        else { return .badStaple("it is an error message") }
        defer { unsafe OCSP_BASICRESP_free(basic) }
        let accepted = unsafe SSL_get0_verified_chain(session)
        var chain = unsafe certificates(in: accepted)
        // The chain of a pinned certificate ends with it. Its authority is that which signed it.
        if unsafe chain.count == 1, let leaf = unsafe chain.first {
            let presented = unsafe certificates(in: SSL_get_peer_cert_chain(session))
            unsafe chain += presented.filter { unsafe isIssuer($0, of: leaf) }.prefix(1)
        }
        guard let authorities = unsafe store(of: chain.dropFirst(), at: security.now) else {
            return .badStaple("the certificate's authority is not known")
        }
        defer { unsafe X509_STORE_free(authorities) }
        guard unsafe OCSP_basic_verify(basic, accepted, authorities, 0) == 1 else {
            return .badStaple("its signature is not the authority's")
        }
        return unsafe status(in: basic, of: chain, at: security.now)
    }

    /// Returns a store of the authorities of the accepted chain, which may be known by a pin only; `nil` without any.
    private static func store(of authorities: ArraySlice<OpaquePointer>, at now: Date) -> OpaquePointer? {
        guard unsafe !authorities.isEmpty, let store = unsafe X509_STORE_new() else { return nil }
        let parameters = unsafe X509_STORE_get0_param(store)
        unsafe _ = X509_VERIFY_PARAM_set_flags(parameters, COPENSSL_V_FLAG_PARTIAL_CHAIN)
        unsafe X509_VERIFY_PARAM_set_time(parameters, time_t(clamping: now))
        unsafe authorities.forEach { unsafe _ = X509_STORE_add_cert(store, $0) }
        return unsafe store
    }

    private static func isIssuer(_ authority: OpaquePointer, of certificate: OpaquePointer) -> Bool {
        unsafe X509_check_issued(authority, certificate) == X509_V_OK
            && X509_verify(certificate, X509_get0_pubkey(authority)) == 1
    }

    private static func status(
        in response: OpaquePointer, of chain: [OpaquePointer], at now: Date
    ) -> TransportError.TLSFailure? {
        guard let leaf = unsafe chain.first else { return .badStaple("the certificate's authority is not known") }
        let issuer = unsafe chain.count > 1 ? chain[1] : leaf
        var (status, reason) = (V_OCSP_CERTSTATUS_UNKNOWN, Int32(0))
        var revoked: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
        var from: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
        var until: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
        // Responders identify the certificate by SHA-1 (RFC 5019 §2.1.1) or SHA-256 (RFC 9654 §3.1.1).
        let isFound = unsafe [EVP_sha1(), EVP_sha256()].contains { digest in
            guard let identifier = unsafe OCSP_cert_to_id(digest, leaf, issuer) else { return false }
            defer { unsafe OCSP_CERTID_free(identifier) }
            return unsafe OCSP_resp_find_status(response, identifier, &status, &reason, &revoked, &from, &until) == 1
        }
        guard isFound else { return .badStaple("it is about another certificate") }
        guard status != V_OCSP_CERTSTATUS_REVOKED else { return .revoked }
        guard status == V_OCSP_CERTSTATUS_GOOD else { return .badStaple("it does not know the certificate") }
        guard let start = unsafe Date(from) else { return .badStaple("it has no time") }
        let end = unsafe Date(until) ?? start.addingTimeInterval(Self.longestAge)
        // Allows for clocks that differ by some minutes.
        guard start.addingTimeInterval(-Self.tolerance) <= now, now <= end.addingTimeInterval(Self.tolerance) else {
            return .badStaple("it is not current")
        }
        return nil
    }

    private static let tolerance = 300.0
    /// The age in seconds up to which a response without a time for the next one is believed: a day. RFC 5019 §4 would
    /// accept none.
    private static let longestAge = 86_400.0
}
