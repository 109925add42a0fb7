// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import Testing

@Suite struct HTTP2SharingTests {
    @Test(
        arguments: [
            (0x07_58_01, true, .exclusive), (0x08_00_01, true, .exclusive), (0x08_05_00, true, .exclusive),
            (0x08_0A_00, true, .exclusive), (0x08_0A_01, true, .multiplexed), (0x08_0E_01, true, .multiplexed),
            (0x09_00_00, true, .multiplexed), (0x07_58_01, false, .unsupported), (0x08_0E_01, false, .unsupported),
        ] as [(UInt32, Bool, HTTP2Sharing)])
    func `exchanges share connections of versions without known defects`(
        version: UInt32, hasHTTP2: Bool, expected: HTTP2Sharing
    ) {
        #expect(HTTP2Sharing(version: version, hasHTTP2: hasHTTP2) == expected)
    }

    /// The expected numbers are those of `CURL_HTTP_VERSION_…` in curl.h, without and with TLS; `nil` for an error.
    @Test(
        arguments: [
            (.unsupported, .automatic, [2, 2]), (.exclusive, .automatic, [2, 2]), (.multiplexed, .automatic, [2, 4]),
            (.unsupported, .http2, [2, 2]), (.exclusive, .http2, [2, 4]), (.multiplexed, .http2, [2, 4]),
            (.unsupported, .http1, [2, 2]), (.exclusive, .http1, [2, 2]), (.multiplexed, .http1, [2, 2]),
            (.unsupported, .http2PriorKnowledge, [nil, nil]), (.exclusive, .http2PriorKnowledge, [5, 5]),
            (.multiplexed, .http2PriorKnowledge, [5, 5]), (.exclusive, .http3, [30, 30]),
            (.multiplexed, .http3Only, [31, 31]),
        ] as [(HTTP2Sharing, HTTPVersionPolicy, [Int?])])
    func `a policy allows the versions that the linked libcurl can be trusted with`(
        sharing: HTTP2Sharing, policy: HTTPVersionPolicy, expected: [Int?]
    ) {
        #expect([false, true].map { try? sharing.curlNumber(of: policy, isSecure: $0, headSize: 100) } == expected)
    }

    @Test(
        arguments: [
            (.automatic, 2), (.http2, 2), (.http1, 2), (.http2PriorKnowledge, nil), (.http3, 30), (.http3Only, 31),
        ] as [(HTTPVersionPolicy, Int?)])
    func `a head that is too large for HTTP/2 is sent over another version`(policy: HTTPVersionPolicy, expected: Int?) {
        let size = HTTP2Sharing.maximumHeadSize
        func number(_ size: Int) -> Int? {
            try? HTTP2Sharing.multiplexed.curlNumber(of: policy, isSecure: true, headSize: size)
        }
        #expect(number(size + 1) == expected)
        #expect(number(size) != nil)
    }
}
