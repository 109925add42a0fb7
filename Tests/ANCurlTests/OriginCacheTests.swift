// SPDX-License-Identifier: MIT

import ANCurl
import Testing

@Suite struct OriginCacheTests {
    private static let samples = [
        ("http://a.example/x", "http://a.example"), ("http://a.example", "http://a.example"),
        ("http://a.example?q=/", "http://a.example"), ("http://a.example.org/", "http://a.example.org"),
        ("https://a.example/", "https://a.example"), ("http://a.example:8080/", "http://a.example:8080"),
        ("http://[::1]:80/a?b", "http://[::1]"), ("http://u:p@a.example/", "http://a.example"),
        ("https://u@a.example:443#f", "https://a.example"), ("HTTP://A.Example:80/X", "http://a.example"),
        ("wss://a.example:443/", "wss://a.example"), ("ws://a.example:443/", "ws://a.example:443"),
        ("http://a.example:80800/", "http://a.example:80800"), ("https://a.example:80/", "https://a.example:80"),
        ("http://a.example#/x", "http://a.example"), ("http://u:@:p@a.example?/@b", "http://a.example"),
        ("http://a", "http://a"), ("", ""),
    ]

    @Test func `the origin has one spelling and no user, whatever was asked before`() {
        for (first, _) in Self.samples {
            for (url, origin) in Self.samples {
                var cache = OriginCache()
                _ = cache.origin(of: first)
                #expect(cache.origin(of: url) == origin, "\(url) after \(first)")
                #expect(cache.origin(of: url) == origin)
            }
        }
    }
}
