// SPDX-License-Identifier: MIT

public import ANHTTP
import CCurl
import COpenSSL

/// The libcurl that the program runs with, which need not be the one it was compiled against.
public struct CurlLibrary: Sendable {
    /// The version, such as `7.88.1`.
    public let version: String
    /// The TLS library, such as `OpenSSL/3.0.17`; empty without TLS.
    public let tlsLibrary: String
    /// Whether HTTP/2 is there.
    public let hasHTTP2: Bool
    /// Whether HTTP/3 is there.
    public let hasHTTP3: Bool
    /// Whether a connection that speaks HTTP/2 by prior knowledge over plain TCP serves more than one request; before 8.0
    /// the preface is sent again with each, which servers refuse.
    public let reusesCleartextHTTP2: Bool
    /// Whether proxies can be spoken to over TLS.
    public let hasHTTPSProxy: Bool
    /// Whether it knows which domains are public suffixes, so that no host sets cookies for them.
    public let hasPublicSuffixList: Bool
    /// The schemes by which it answers challenges.
    public let authenticationSchemes: Set<AuthenticationScheme>
    /// Whether it signs requests to Amazon's services as they want it: since 7.87 the header fields are signed too.
    public let hasAWSSignatures: Bool

    /// The library of this process. The first use initialises it, once. See curl_global_init(3) and
    /// curl_version_info(3).
    public static let current: Result<CurlLibrary, TransportError> = initialize()

    /// Whether libcurl's TLS is made by the OpenSSL that this library calls too.
    static let usesOpenSSL: Bool = {
        guard let library = try? current.get().tlsLibrary, let version = unsafe OpenSSL_version(OPENSSL_VERSION_STRING)
        else { return false }
        return isOpenSSL(library, version: unsafe String(cString: version))
    }()

    /// Whether `library`, as libcurl names it, is OpenSSL in this version, so that its contexts may be handed to it.
    package static func isOpenSSL(_ library: String, version: String) -> Bool {
        library == "OpenSSL/\(version)"
    }

    private static func initialize() -> Result<CurlLibrary, TransportError> {
        let code = curl_global_init(CCURL_GLOBAL_DEFAULT)
        guard code == CURLE_OK, let info = unsafe curl_version_info(CCURL_VERSION_NOW)?.pointee else {
            var facts = FailureContext()
            facts.curlCode = Int32(code.rawValue)
            return .failure(.internalInconsistency("libcurl cannot be initialised.", facts))
        }
        func has(_ feature: Int32) -> Bool { unsafe info.features & feature != 0 }
        var schemes: Set<AuthenticationScheme> = [.basic, .digest]
        if has(CURL_VERSION_NTLM) { schemes.insert(.ntlm) }
        if has(CURL_VERSION_SPNEGO) { schemes.insert(.negotiate) }
        let library = unsafe CurlLibrary(
            version: String(cString: info.version),
            tlsLibrary: info.ssl_version.map { unsafe String(cString: $0) } ?? "",
            hasHTTP2: has(CURL_VERSION_HTTP2),
            hasHTTP3: has(CURL_VERSION_HTTP3),
            reusesCleartextHTTP2: info.version_num >= 0x08_00_00,
            hasHTTPSProxy: has(CURL_VERSION_HTTPS_PROXY),
            hasPublicSuffixList: has(CURL_VERSION_PSL),
            authenticationSchemes: schemes,
            hasAWSSignatures: info.version_num >= 0x07_57_00)
        return .success(library)
    }
}
