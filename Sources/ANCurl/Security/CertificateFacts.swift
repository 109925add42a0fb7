// SPDX-License-Identifier: MIT

import ANHTTP
import COpenSSL
import FoundationEssentials
import Glibc

extension ServerTrust.Certificate {
    /// Reads the fields of a certificate; `nil` if OpenSSL cannot encode the certificate.
    init?(_ certificate: OpaquePointer) {
        guard let key = unsafe PublicKeyPin(of: certificate), let der = unsafe Self.der(of: certificate) else {
            return nil
        }
        let (dnsNames, ipAddresses) = unsafe Self.alternativeNames(of: certificate)
        unsafe self.init(
            der: der, publicKey: key, subject: Self.text(of: X509_get_subject_name(certificate)),
            issuer: Self.text(of: X509_get_issuer_name(certificate)),
            serialNumber: Self.hexadecimal(X509_get0_serialNumber(certificate)), dnsNames: dnsNames,
            ipAddresses: ipAddresses, notBefore: Date(X509_get0_notBefore(certificate)) ?? .distantPast,
            notAfter: Date(X509_get0_notAfter(certificate)) ?? .distantPast)
    }

    /// Returns the certificates of an OpenSSL stack, in its order; none if the stack is null.
    static func all(in stack: OpaquePointer?) -> [ServerTrust.Certificate] {
        unsafe certificates(in: stack).compactMap { unsafe ServerTrust.Certificate($0) }
    }

    private static func der(of certificate: OpaquePointer) -> Data? {
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_X509(certificate, &bytes)
        guard count > 0, let start = unsafe bytes else { return nil }
        defer { unsafe CRYPTO_free(start, nil, 0) }
        return unsafe Data(bytes: start, count: Int(count))
    }

    /// Returns a distinguished name in the form of RFC 4514. See X509_NAME_print_ex(3).
    private static func text(of name: OpaquePointer?) -> String {
        guard let bio = unsafe MemoryBIO(), let name = unsafe name else { return "" }
        guard unsafe X509_NAME_print_ex(bio.raw, name, 0, COPENSSL_NAME_RFC2253) >= 0 else { return "" }
        return bio.text
    }

    private static func hexadecimal(_ number: UnsafePointer<ASN1_INTEGER>?) -> String {
        guard let number = unsafe number else { return "" }
        return unsafe bytes(of: number).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private static func bytes(of string: UnsafePointer<ASN1_STRING>) -> [UInt8] {
        unsafe Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string))))
    }

    private static func alternativeNames(of certificate: OpaquePointer) -> (dns: [String], addresses: [String]) {
        var names: (dns: [String], addresses: [String]) = ([], [])
        guard let list = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return names }
        let stack = OpaquePointer(list)
        defer { unsafe GENERAL_NAMES_free(stack) }
        for index in 0..<(unsafe max(0, OPENSSL_sk_num(stack))) {
            guard let name = unsafe OPENSSL_sk_value(stack, index)?.assumingMemoryBound(to: GENERAL_NAME.self) else {
                continue
            }
            var kind: Int32 = 0
            guard let value = unsafe GENERAL_NAME_get0_value(name, &kind) else { continue }
            switch kind {
            case GEN_DNS:
                let content = unsafe bytes(of: value.assumingMemoryBound(to: ASN1_STRING.self))
                names.dns.append(String(decoding: content, as: UTF8.self))
            case GEN_IPADD:
                let content = unsafe bytes(of: value.assumingMemoryBound(to: ASN1_STRING.self))
                if let address = HostName(addressBytes: Array(content)) { names.addresses.append(address.text) }
            default: break
            }
        }
        return names
    }
}

extension PublicKeyPin {
    /// Creates the pin of a certificate's public key; `nil` if OpenSSL cannot encode the key.
    init?(of certificate: OpaquePointer) {
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &bytes)
        guard count > 0, let start = unsafe bytes else { return nil }
        defer { unsafe CRYPTO_free(start, nil, 0) }
        var digest = Data(count: 32)
        let code = unsafe digest.withUnsafeMutableBytes {
            unsafe EVP_Digest(
                start, Int(count), $0.baseAddress?.assumingMemoryBound(to: UInt8.self), nil, EVP_sha256(), nil)
        }
        guard code == 1, let pin = try? PublicKeyPin(sha256: digest) else { return nil }
        self = pin
    }
}

extension Date {
    /// Creates a date from an OpenSSL time; `nil` if it is invalid.
    init?(_ time: UnsafePointer<ASN1_TIME>?) {
        guard let time = unsafe time else { return nil }
        var parts = unsafe tm()
        guard unsafe ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        unsafe self.init(timeIntervalSince1970: Double(timegm(&parts)))
    }
}

/// Returns the certificates of an OpenSSL stack, which retains ownership; none if the stack is null.
func certificates(in stack: OpaquePointer?) -> [OpaquePointer] {
    let count = unsafe OPENSSL_sk_num(stack)
    guard count > 0 else { return unsafe [] }
    return unsafe (0..<count).compactMap { unsafe OpaquePointer(OPENSSL_sk_value(stack, $0)) }
}
