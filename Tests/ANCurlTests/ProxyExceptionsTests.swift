// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import Testing

@Suite struct ProxyExceptionsTests {
    @Test(arguments: [
        ("*", "a.test", true), ("example.test", "example.test", true), ("example.test", "a.b.example.test", true),
        ("example.test", "anexample.test", false), (".example.test", "a.example.test", true),
        (".example.test", "example.test", true), ("*.example.test", "a.example.test", true),
        ("*.example.test", "anexample.test", false), ("EXAMPLE.test.", "a.Example.TEST", true),
        ("example.test:80", "example.test", true), ("example.test:81", "example.test", false),
        (" example.test\t", "example.test", true), ("", "example.test", false), (".", "example.test", false),
        ("127.0.0.1", "127.0.0.1", true), ("127.1", "127.0.0.1", true), ("0.0.1", "127.0.0.1", false),
        ("10.0.0.0/8", "10.255.1.2", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.1.2.3/32", "10.1.2.3", true),
        ("10.0.0.0/33", "10.0.0.0", false), ("0.0.0.0/0", "1.2.3.4", true), ("0.0.0.0/0", "::1", false),
        ("10.0.0.0/-1", "10.0.0.0", false), ("10.0.0.0/", "10.0.0.0", false), ("/8", "10.0.0.0", false),
        ("fd00::/8", "[fd12::1]", true), ("fd00::/8", "[fe80::1]", false), ("[fd00::]/8", "[fd12::1]", true),
        ("fd00::/9", "[fd80::1]", false), ("[fd00::1]", "[fd00::1]", true), ("fd00:0::1", "[fd00::1]", true),
        ("fd00::1", "[fd00:0:0::1]", true), ("[fd00::1]:80", "[fd00::1]", true), ("[fd00::1]:8", "[fd00::1]", false),
        ("fd00::2", "[fd00::1]", false), ("1", "a.1", false), ("::/0", "[::1]", true),
    ])
    func `an entry matches the spellings of its hosts`(entry: String, host: String, expected: Bool) {
        #expect(ProxyExceptions([entry]).contain(HostName(host), port: 80) == expected)
        #expect(ProxyExceptions(["other.test", entry]).contain(HostName(host), port: 80) == expected)
    }

    @Test(
        arguments: [
            ([:], []), (["no_proxy": "a.test"], ["a.test"]), (["NO_PROXY": "a.test"], ["a.test"]),
            (["no_proxy": "a.test", "NO_PROXY": "b.test"], ["a.test"]), (["no_proxy": ""], []),
            (["no_proxy": "", "NO_PROXY": "b.test"], ["b.test"]), (["no_proxy": ",", "NO_PROXY": "b.test"], []),
            (["no_proxy": ",a.test b.test\t,"], ["a.test", "b.test"]), (["No_Proxy": "a.test"], []),
        ] as [([String: String], [String])])
    func `the first variable that is not empty names the exceptions`(environment: [String: String], hosts: [String]) {
        let exceptions = ProxyExceptions { environment["\($0)"] }
        for host in ["a.test", "b.test"] {
            #expect(exceptions.contain(HostName(host), port: 80) == hosts.contains(host))
        }
    }
}
