// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import Testing

@Suite struct ProxyPolicyTests {
    private static let proxy = "https://proxy.example:8443"

    @Test(
        arguments: [
            ([:], false, false), ([:], true, false), (["http_proxy": proxy], false, true),
            (["http_proxy": proxy], true, false), (["HTTP_PROXY": proxy], false, false),
            (["https_proxy": proxy], false, false), (["https_proxy": proxy], true, true),
            (["HTTPS_PROXY": proxy], true, true), (["all_proxy": proxy], false, true),
            (["ALL_PROXY": proxy], true, true),
            (["all_proxy": "HTTPS://proxy.example"], true, true), (["all_proxy": "http://proxy.example"], true, false),
            (["all_proxy": "proxy.example"], true, false), (["all_proxy": ""], true, false),
        ] as [([String: String], Bool, Bool)])
    func `the environment may name a proxy over TLS`(environment: [String: String], isSecure: Bool, expected: Bool) {
        #expect(ProxyPolicy.environment.mayUseTLS(isSecure: isSecure) { environment[$0] } == expected)
    }

    @Test(arguments: [(Proxy.Kind.http, false), (.https, true), (.socks5h, false)])
    func `a given proxy is connected to over TLS if its protocol says so`(kind: Proxy.Kind, expected: Bool) {
        let policy = ProxyPolicy.proxy(Proxy(kind, host: "proxy.example", port: 1))
        #expect(policy.mayUseTLS(isSecure: true) { _ in Self.proxy } == expected)
        #expect(!ProxyPolicy.none.mayUseTLS(isSecure: true) { _ in Self.proxy })
    }

    @Test(
        arguments: [
            ([:], true, false), (["http_proxy": proxy], true, false), (["http_proxy": proxy], false, true),
            (["https_proxy": "proxy.example"], true, true), (["HTTPS_PROXY": proxy], true, true),
            (["HTTPS_PROXY": ""], true, false), (["https_proxy": proxy], false, false),
            (["all_proxy": "socks5://proxy.example"], true, true), (["ALL_PROXY": proxy], true, true),
        ] as [([String: String], Bool, Bool)])
    func `the environment may name a proxy`(environment: [String: String], isSecure: Bool, expected: Bool) {
        #expect(ProxyPolicy.environment.mayBeUsed(isSecure: isSecure) { environment[$0] } == expected)
        #expect(!ProxyPolicy.none.mayBeUsed(isSecure: isSecure) { environment[$0] })
        let proxy = Proxy(.socks5h, host: "proxy.example", port: 1, bypass: ["*"])
        #expect(ProxyPolicy.proxy(proxy).mayBeUsed(isSecure: isSecure) { environment[$0] })
    }
}
