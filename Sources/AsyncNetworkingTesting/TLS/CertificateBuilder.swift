// SPDX-License-Identifier: MIT

import COpenSSL
import FoundationEssentials

/// A builder of X.509 certificates with new keys.
///
/// See X509_sign(3) and x509v3_config(5).
struct CertificateBuilder {
    let profile: TestCertificate.Profile
    let role: Role

    /// The purpose of a certificate.
    enum Role {
        /// A certificate authority, which signs other certificates.
        case authority
        /// A server or client certificate.
        case leaf
    }

    /// The signer of a certificate.
    struct Signer {
        let certificate: TestCertificate
        /// The intermediate certificates that a server must send after its own.
        let chain: Data
    }

    /// Returns a new certificate, self-signed if `signer` is `nil`.
    func build(signedBy signer: Signer?) throws(OpenSSLError) -> TestCertificate {
        ERR_clear_error()
        let key = try PrivateKeyHandle()
        guard let raw = unsafe X509_new() else { throw .last("X509_new") }
        let certificate = unsafe X509Handle(takingOwnershipOf: raw)
        try setFields(of: certificate, key)
        if let signer {
            try X509Handle.forEach(inPEM: signer.certificate.pemData) { issuer throws(OpenSSLError) in
                try finish(certificate, issuer: issuer, key: PrivateKeyHandle(pem: signer.certificate.privateKeyPEM))
            }
        } else {
            try finish(certificate, issuer: certificate, key: key)
        }
        let pem = try certificate.pem()
        return TestCertificate(
            pemData: pem, chainPEM: pem + (signer?.chain ?? Data()), privateKeyPEM: try key.pem(),
            derData: try certificate.der(), publicKeyDER: try key.publicDER())
    }

    private func setFields(
        of certificate: borrowing X509Handle, _ key: borrowing PrivateKeyHandle
    ) throws(OpenSSLError) {
        let raw = unsafe certificate.raw
        // The value 2 denotes version 3.
        try check(unsafe X509_set_version(raw, 2), "X509_set_version")
        let serial = UInt64.random(in: 1...UInt64(Int64.max))
        try check(unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(raw), serial), "ASN1_INTEGER_set_uint64")
        guard
            unsafe X509_gmtime_adj(X509_getm_notBefore(raw), Int(profile.validity.start.components.seconds)) != nil,
            unsafe X509_gmtime_adj(X509_getm_notAfter(raw), Int(profile.validity.end.components.seconds)) != nil
        else { throw .last("X509_gmtime_adj") }
        try check(
            unsafe X509_NAME_add_entry_by_txt(
                X509_get_subject_name(raw), "CN", MBSTRING_UTF8, profile.commonName, -1, -1, 0),
            "X509_NAME_add_entry_by_txt")
        try check(unsafe X509_set_pubkey(raw, key.raw), "X509_set_pubkey")
    }

    private func finish(
        _ certificate: borrowing X509Handle, issuer: borrowing X509Handle, key: borrowing PrivateKeyHandle
    ) throws(OpenSSLError) {
        let raw = unsafe certificate.raw
        try check(unsafe X509_set_issuer_name(raw, X509_get_subject_name(issuer.raw)), "X509_set_issuer_name")
        var context = unsafe copenssl_extension_context(issuer.raw, raw)
        for (kind, value) in extensions {
            guard let ext = unsafe X509V3_EXT_nconf_nid(nil, &context, kind, value) else {
                throw .last("X509V3_EXT_nconf_nid")
            }
            let code = unsafe X509_add_ext(raw, ext, -1)
            unsafe X509_EXTENSION_free(ext)
            try check(code, "X509_add_ext")
        }
        // X509_sign(3) returns the size of the signature.
        guard unsafe X509_sign(raw, key.raw, EVP_sha256()) > 0 else { throw .last("X509_sign") }
    }

    private var extensions: [(Int32, String)] {
        let common = [(NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid")]
        switch role {
        case .authority:
            return common + [
                (NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
            ]
        case .leaf:
            let names = profile.dnsNames.map { "DNS:\($0)" } + profile.ipAddresses.map { "IP:\($0)" }
            return common + [
                (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, "serverAuth,clientAuth"),
            ] + (names.isEmpty ? [] : [(NID_subject_alt_name, names.joined(separator: ","))])
        }
    }

    private func check(_ code: Int32, _ call: String) throws(OpenSSLError) {
        guard code == 1 else { throw .last(call) }
    }
}
