// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import Testing

@Suite struct EasyHandleOptionsTests {
    /// The expected numbers are those of `CURL_HTTP_VERSION_…` in curl.h.
    @Test(
        arguments: [
            (.automatic, [2, 2, 2, 4]), (.http1, [2, 2, 2, 2]), (.http2PriorKnowledge, [5, 5, 5, 5]),
            (.http3, [30, 30, 30, 30]), (.http3Only, [31, 31, 31, 31]),
        ] as [(HTTPVersionPolicy, [Int])])
    func `HTTP/2 is negotiated over TLS only`(policy: HTTPVersionPolicy, expected: [Int]) {
        let numbers = [(false, false), (false, true), (true, false), (true, true)].map { isSecure, hasHTTP2 in
            policy.curlNumber(isSecure: isSecure, hasHTTP2: hasHTTP2)
        }
        #expect(numbers == expected)
    }

    /// The expected numbers are those of `CURL_SSLVERSION_…` in curl.h. The lower half is the minimum, and the upper half
    /// the maximum, which is 1 for the default, and never 0, as in libcurl's own handles.
    @Test(
        arguments: [
            (.v1_0, nil, 0x1_0004), (.v1_1, nil, 0x1_0005), (.v1_2, nil, 0x1_0006), (.v1_3, nil, 0x1_0007),
            (.v1_0, .v1_1, 0x5_0004), (.v1_2, .v1_2, 0x6_0006), (.v1_2, .v1_3, 0x7_0006), (.v1_0, .v1_0, 0x4_0004),
        ] as [(TLSVersion, TLSVersion?, Int)])
    func `the maximum version of TLS is always set`(minimum: TLSVersion, maximum: TLSVersion?, expected: Int) {
        var options = TLSOptions()
        options.minimumVersion = minimum
        options.maximumVersion = maximum
        #expect(options.curlVersions == expected)
    }
}
