// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import CCurl
import Testing

@Suite struct CurlLibraryTests {
    private func library(
        _ version: UInt32 = 0x07_58_01, features: Int32 = 0, tls: StaticString? = nil, quic: StaticString? = nil
    ) -> CurlLibrary {
        let name: StaticString = "7.88.1"
        var info = unsafe curl_version_info_data()
        unsafe info.version = unsafe UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
        unsafe info.version_num = version
        unsafe info.features = features
        if let tls {
            unsafe info.ssl_version = unsafe UnsafeRawPointer(tls.utf8Start).assumingMemoryBound(to: CChar.self)
        }
        if let quic {
            unsafe info.quic_version = unsafe UnsafeRawPointer(quic.utf8Start).assumingMemoryBound(to: CChar.self)
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

    /// libcurl 8.15 gives access to a TLS context in place of the session of QUIC.
    @Test(arguments: [(0x08_0E_01, true), (0x08_0F_00, false), (0x08_0F_FF, false), (0x08_10_00, true)])
    func `HTTP/3 is used unless its sessions are confused with contexts`(version: UInt32, isUsed: Bool) {
        let ngtcp2 = library(version, features: CURL_VERSION_HTTP3, quic: "ngtcp2/1.12.0 nghttp3/1.10.1")
        #expect(ngtcp2.hasHTTP3 == isUsed)
        #expect(ngtcp2.usesNGTCP2 == isUsed)
        let openSSL = library(version, features: CURL_VERSION_HTTP3, quic: "OpenSSL 3.5.1 nghttp3/1.10.1")
        #expect(openSSL.hasHTTP3 == isUsed)
        #expect(!openSSL.usesNGTCP2)
        #expect(!library(version, quic: "ngtcp2/1.12.0").usesNGTCP2)
    }

    @Test func `the TLS library is that of the build`() {
        #expect(library().version == "7.88.1")
        #expect(library().tlsLibrary.isEmpty)
        #expect(library(tls: "OpenSSL/3.0.17").tlsLibrary == "OpenSSL/3.0.17")
    }

    @Test(
        arguments: [
            (
                0x07_58_01,
                [
                    .lostAnswers, .countedResolvers, .successiveAddresses, .forgottenAttempts, .headBesideCookies,
                    .ignoredExcess, .rawCookiePaths, .decodedProxyCredentials, .unseenEnds,
                ]
            ),
            (
                0x08_02_00,
                [
                    .lostAnswers, .countedResolvers, .successiveAddresses, .forgottenAttempts, .ignoredExcess,
                    .rawCookiePaths, .decodedProxyCredentials, .unseenEnds, .hastyPauses,
                ]
            ),
            (
                0x08_05_00,
                [
                    .lostAnswers, .countedResolvers, .successiveAddresses, .ignoredExcess, .rawCookiePaths,
                    .decodedProxyCredentials, .readPauses, .hastyPauses,
                ]
            ),
            (
                0x08_07_01,
                [
                    .lostAnswers, .countedResolvers, .successiveAddresses, .rawCookiePaths, .decodedProxyCredentials,
                    .unseenEnds, .hastyPauses,
                ]
            ),
            (
                0x08_08_00,
                [
                    .lostAnswers, .countedResolvers, .successiveAddresses, .countedQueue, .rawCookiePaths, .unseenEnds,
                    .hastyPauses, .latePauses,
                ]
            ),
            (
                0x08_0A_01,
                [.lostAnswers, .successiveAddresses, .countedQueue, .rawCookiePaths, .unsentResets, .sendingReads]
            ),
            (
                0x08_0B_00,
                [
                    .lostAnswers, .unlockedCookies, .successiveAddresses, .countedQueue, .rawCookiePaths, .unsentResets,
                    .sendingReads,
                ]
            ),
            (
                0x08_0D_00,
                [
                    .lostAnswers, .unlockedCookies, .droppedFields, .successiveAddresses, .countedQueue,
                    .rawCookiePaths, .unsentResets, .sendingReads,
                ]
            ),
            (
                0x08_0F_00,
                [.unlockedCookies, .droppedFields, .successiveAddresses, .countedQueue, .rawCookiePaths, .sendingReads]
            ),
            (
                0x08_10_00,
                [.unlockedLookups, .keptLookups, .droppedFields, .rawCookiePaths, .fragilePauses, .sendingReads]
            ),
            (
                0x08_11_00,
                [
                    .unlockedLookups, .keptLookups, .droppedFields, .rawCookiePaths, .ignoredDirectory, .watchedPauses,
                    .sendingReads,
                ]
            ),
            (0x08_12_00, [.unlockedLookups, .keptLookups, .droppedFields, .watchedPauses, .sendingReads]),
            (0x08_13_00, [.unlockedLookups, .keptLookups, .droppedFields, .watchedPauses, .sendingReads]),
            (0x08_14_00, [.keptLookups, .droppedFields, .watchedPauses, .unreadWakeups]),
            (0x08_15_00, [.keptLookups, .droppedFields, .restoredRoots]),
            (0x08_16_00, [.unreadInput, .restoredRoots]),
            (0x09_00_00, [.unreadInput, .restoredRoots]),
        ] as [(UInt32, CurlDefects)])
    func `each version has the defects that it was released with`(version: UInt32, defects: CurlDefects) {
        #expect(CurlDefects(version: version) == defects)
        #expect(library(version).defects == defects)
    }

    @Test(arguments: [(0x08_15_00, false), (0x08_16_00, true)])
    func `an idle connection with unread input is not used for a request that could be lost`(
        version: UInt32, isForbidden: Bool
    ) {
        let defects = CurlDefects(version: version)
        #expect(defects.forbidInput(isWatched: false, isRepeatable: false) == isForbidden)
        for (isWatched, isRepeatable) in [(true, false), (false, true), (true, true)] {
            #expect(!defects.forbidInput(isWatched: isWatched, isRepeatable: isRepeatable))
        }
    }

    @Test func `failed look-ups are noted until one succeeds`() {
        var lookups = FailedLookups()
        lookups.note("a.test", hasFailed: true)
        lookups.note("b.test", hasFailed: false)
        #expect(lookups.contains("a.test"))
        #expect(!lookups.contains("b.test"))
        lookups.note("a.test", hasFailed: false)
        #expect(!lookups.contains("a.test"))
        for number in 0...FailedLookups.maximumCount { lookups.note("\(number).test", hasFailed: true) }
        #expect(!lookups.contains("0.test"))
        #expect(lookups.contains("\(FailedLookups.maximumCount).test"))
    }
}
