// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import Testing

@Suite struct EasyHandleOptionsTests {
    /// The expected numbers are those of `CURL_SSLVERSION_…` in curl.h. The lower half is the minimum, and the upper half
    /// the maximum, which is never 0, as in libcurl's own handles.
    @Test(
        arguments: [
            (.v1_0, nil, 0x7_0004), (.v1_1, nil, 0x7_0005), (.v1_2, nil, 0x7_0006), (.v1_3, nil, 0x7_0007),
            (.v1_0, .v1_1, 0x5_0004), (.v1_2, .v1_2, 0x6_0006), (.v1_2, .v1_3, 0x7_0006), (.v1_0, .v1_0, 0x4_0004),
        ] as [(TLSVersion, TLSVersion?, Int)])
    func `the maximum version of TLS is always set`(minimum: TLSVersion, maximum: TLSVersion?, expected: Int) {
        var options = TLSOptions()
        options.minimumVersion = minimum
        options.maximumVersion = maximum
        #expect(options.curlVersions == expected)
    }
}
