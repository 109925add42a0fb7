// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import CCurl
import Testing

@Suite struct CurlLibraryTests {
    private func library(
        _ version: UInt32 = 0x07_58_01, features: Int32 = 0, tls: StaticString? = nil
    ) -> CurlLibrary {
        let name: StaticString = "7.88.1"
        var info = unsafe curl_version_info_data()
        unsafe info.version = unsafe UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
        unsafe info.version_num = version
        unsafe info.features = features
        if let tls {
            unsafe info.ssl_version = unsafe UnsafeRawPointer(tls.utf8Start).assumingMemoryBound(to: CChar.self)
        }
        return unsafe CurlLibrary(info)
    }

    @Test(
        arguments: [
            (CURL_VERSION_HTTP2, 0), (CURL_VERSION_HTTP3, 1), (CURL_VERSION_HTTPS_PROXY, 2), (CURL_VERSION_PSL, 3),
            (CURL_VERSION_NTLM, 4), (CURL_VERSION_SPNEGO, 5), (CURL_VERSION_LIBZ, 6),
        ] as [(Int32, Int)])
    func `other abilities are features of the build`(feature: Int32, index: Int) {
        func abilities(_ library: CurlLibrary) -> [Bool] {
            [
                library.http2 != .unsupported, library.hasHTTP3, library.hasHTTPSProxy, library.hasPublicSuffixList,
                library.authenticationSchemes.contains(.ntlm), library.authenticationSchemes.contains(.negotiate),
            ]
        }
        #expect(abilities(library(features: feature)) == (0..<6).map { $0 == index })
        #expect(abilities(library(features: ~feature)) == (0..<6).map { $0 != index })
        #expect(library(features: feature).authenticationSchemes.isSuperset(of: [.basic, .digest]))
    }

    @Test func `the TLS library is that of the build`() {
        #expect(library().version == "7.88.1")
        #expect(library().tlsLibrary.isEmpty)
        #expect(library(tls: "OpenSSL/3.0.17").tlsLibrary == "OpenSSL/3.0.17")
    }
}
