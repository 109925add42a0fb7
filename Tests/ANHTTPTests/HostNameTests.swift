// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

@Suite struct HostNameTests {
    @Test(arguments: [
        ("http://EXAMPLE.test./", "example.test", false), ("http://ex%61mple.test/", "example.test", false),
        ("http://[::1]/", "::1", true), ("http://[2001:DB8:0:0:1:0:0:1]/", "2001:db8::1:0:0:1", true),
        ("http://[1:0:2:0:0:3:0:0]/", "1:0:2::3:0:0", true), ("http://[1:0:2:3:4:5:6:7]/", "1:0:2:3:4:5:6:7", true),
        ("http://[1::]/", "1::", true), ("http://[::]/", "::", true), ("http://[::1.2.3.4]/", "::1.2.3.4", true),
        ("http://[::ffff:102:304]/", "::ffff:1.2.3.4", true), ("http://[64:ff9b::1.2.3.4]/", "64:ff9b::102:304", true),
        ("http://1.2/", "1.0.0.2", true), ("http://1.2.772/", "1.2.3.4", true), ("http://0x1.02.3.4/", "1.2.3.4", true),
        ("http://4294967295/", "255.255.255.255", true), ("http://4294967296/", "4294967296", false),
        ("http://1.2.3.256/", "1.2.3.256", false), ("http://1.2.3.4.5/", "1.2.3.4.5", false),
        ("http://08.1/", "08.1", false), ("http://1.a/", "1.a", false), ("http://0x.1/", "0x.1", false),
        ("file:///x", "", false),
    ])
    func `all spellings of a host are normalized`(url: String, text: String, isAddress: Bool) throws {
        let name = HostName(try #require(URL(string: url)))
        #expect(name.text == text)
        #expect(name.isAddress == isAddress)
    }

    @Test func `the zone of an address is part of the host in any spelling`() throws {
        let name = HostName(try #require(URL(string: "http://[FE80::1%25eth0]/")))
        #expect(name.text == "fe80::1")
        #expect(name.zonedText == "fe80::1%eth0")
        #expect(name == HostName("[fe80:0::1%eth0]"))
        #expect(name != HostName("fe80::1%eth1"))
    }

    @Test func `the bytes of an address give its canonical form`() {
        #expect(HostName(addressBytes: [127, 0, 0, 1])?.text == "127.0.0.1")
        #expect(HostName(addressBytes: [UInt8](repeating: 0, count: 15) + [1])?.text == "::1")
        #expect(HostName(addressBytes: [1, 2, 3]) == nil)
    }
}
