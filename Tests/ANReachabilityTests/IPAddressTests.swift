// SPDX-License-Identifier: MIT

import ANReachability
import Testing

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("192.0.2.1", [192, 0, 2, 1]), ("0.0.0.0", [0, 0, 0, 0]),
        ("2001:db8::a", [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10]),
        ("::", [UInt8](repeating: 0, count: 16)),
    ])
    func `text and bytes give the same address`(text: String, bytes: [UInt8]) throws {
        let address = try #require(IPAddress(text))
        #expect(address.bytes == bytes)
        #expect(address.description == text)
        #expect(IPAddress(bytes: bytes) == address)
        #expect(address.family == (bytes.count == 4 ? .v4 : .v6))
    }

    @Test func `an IPv4-mapped IPv6 address becomes the IPv4 address`() {
        #expect(IPAddress("::ffff:192.0.2.1") == IPAddress("192.0.2.1"))
        #expect(IPAddress("::192.0.2.1")?.family == .v6)
    }

    @Test func `the unspecified addresses of the two families differ`() {
        #expect(IPAddress("0.0.0.0") != IPAddress("::"))
    }

    @Test(arguments: [
        "", "localhost", "192.0.2", "192.0.2.256", "192.0.2.1 ", "[::1]", "fe80::1%eth0", "192.0.2.1\0.example", "1:2",
    ])
    func `a text that is not an address is rejected`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(arguments: [0, 1, 3, 5, 15, 17])
    func `any number of bytes but 4 and 16 is rejected`(count: Int) {
        #expect(IPAddress(bytes: [UInt8](repeating: 1, count: count)) == nil)
    }
}
