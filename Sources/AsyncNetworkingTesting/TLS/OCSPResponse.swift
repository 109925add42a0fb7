// SPDX-License-Identifier: MIT

import COpenSSL
package import FoundationEssentials

/// An OCSP response about a certificate, as servers staple it to their handshakes. See RFC 6960 and OCSP_basic_sign(3).
package struct OCSPResponse {
    /// The status of the certificate.
    package var status = Status.good
    /// The time from `thisUpdate` to `nextUpdate`.
    package var validity = TestCertificate.Validity.valid
    /// Whether the response has `nextUpdate`.
    package var hasNextUpdate = true
    /// The certificate and key that sign the response; `nil` for the issuer's.
    package var signer: TestCertificate?
    /// Whether the certificate is identified by SHA-256 (RFC 9654) instead of SHA-1.
    package var usesSHA256 = false

    /// Creates a current response that the issuer signs, with the status `good`.
    package init() {}

    /// The status of a certificate, with the values of `V_OCSP_CERTSTATUS_…`.
    package enum Status: Int32, Sendable {
        case good, revoked, unknown
    }

    /// Makes the response about a certificate, in DER.
    package func der(about certificate: TestCertificate, of issuer: TestCertificate) throws(OpenSSLError) -> Data {
        ERR_clear_error()
        guard let basic = unsafe OCSP_BASICRESP_new() else { throw .last("OCSP_BASICRESP_new") }
        defer { unsafe OCSP_BASICRESP_free(basic) }
        try unsafe addStatus(of: X509Handle(certificate), X509Handle(issuer), to: basic)
        try unsafe sign(basic, as: signer ?? issuer)
        return try unsafe Self.der(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
    }

    /// Makes a response with the error `tryLater`, in DER.
    package static func tryLater() throws(OpenSSLError) -> Data {
        unsafe try der(OCSP_RESPONSE_STATUS_TRYLATER, nil)
    }

    private func addStatus(
        of subject: borrowing X509Handle, _ issuer: borrowing X509Handle, to response: OpaquePointer
    ) throws(OpenSSLError) {
        let digest = unsafe usesSHA256 ? EVP_sha256() : EVP_sha1()
        guard let identifier = unsafe OCSP_cert_to_id(digest, subject.raw, issuer.raw) else {
            throw .last("OCSP_cert_to_id")
        }
        defer { unsafe OCSP_CERTID_free(identifier) }
        let start = unsafe Self.time(validity.start)
        defer { unsafe ASN1_GENERALIZEDTIME_free(start) }
        let end = unsafe hasNextUpdate ? Self.time(validity.end) : nil
        defer { unsafe ASN1_GENERALIZEDTIME_free(end) }
        let revocation = unsafe status == .revoked ? start : nil
        guard
            unsafe OCSP_basic_add1_status(
                response, identifier, status.rawValue, OCSP_REVOKED_STATUS_NOSTATUS, revocation, start, end) != nil
        else { throw .last("OCSP_basic_add1_status") }
    }

    private func sign(_ response: OpaquePointer, as signer: TestCertificate) throws(OpenSSLError) {
        let name = try X509Handle(signer)
        let key = try PrivateKeyHandle(pem: signer.privateKeyPEM)
        guard unsafe OCSP_basic_sign(response, name.raw, key.raw, EVP_sha256(), nil, 0) == 1 else {
            throw .last("OCSP_basic_sign")
        }
    }

    /// The time at an offset from now.
    private static func time(_ offset: Duration) -> UnsafeMutablePointer<ASN1_GENERALIZEDTIME>? {
        unsafe ASN1_GENERALIZEDTIME_adj(nil, time_t(Date.now.timeIntervalSince1970), 0, Int(offset.components.seconds))
    }

    private static func der(_ status: Int32, _ basic: OpaquePointer?) throws(OpenSSLError) -> Data {
        guard let response = unsafe OCSP_response_create(status, basic) else { throw .last("OCSP_response_create") }
        defer { unsafe OCSP_RESPONSE_free(response) }
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_OCSP_RESPONSE(response, &bytes)
        guard let start = unsafe bytes, count > 0 else { throw .last("i2d_OCSP_RESPONSE") }
        defer { unsafe CRYPTO_free(start, nil, 0) }
        return unsafe Data(bytes: start, count: Int(count))
    }
}
