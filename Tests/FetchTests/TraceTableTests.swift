// SPDX-License-Identifier: MIT

import AsyncNetworking
import Fetch
import Testing

@Suite struct TraceTableTests {
    @Test func `each step has its duration and the time since the start`() {
        var metrics = TransferMetrics()
        metrics.queued = .milliseconds(1)
        metrics.nameLookup = .milliseconds(3)
        metrics.connect = .milliseconds(10)
        metrics.tlsHandshake = .milliseconds(30)
        metrics.firstByte = .milliseconds(50)
        metrics.total = .milliseconds(1250)
        metrics.requestHeadBytes = 100
        metrics.responseHeadBytes = 200
        metrics.responseBodyBytes = 4000
        metrics.localAddress = SocketAddress(host: "127.0.0.1", port: 5)
        metrics.remoteAddress = SocketAddress(host: "::1", port: 443)
        metrics.httpVersion = .http2
        metrics.tlsVersion = "TLSv1.3"
        metrics.cipher = "TLS_AES_256_GCM_SHA384"
        #expect(
            TraceTable.text(metrics, title: "https://example.com/") == """
                https://example.com/
                                      step       total
                  queue             1.0 ms      1.0 ms
                  name look-up      2.0 ms      3.0 ms
                  connect           7.0 ms     10.0 ms
                  TLS              20.0 ms     30.0 ms
                  first byte       20.0 ms     50.0 ms
                  rest               1.2 s       1.3 s
                  sent        100 B head, 0 B body
                  received    200 B head, 4.0 kB body
                  connection  127.0.0.1:5 → [::1]:443, new, HTTP/2, TLSv1.3, TLS_AES_256_GCM_SHA384

                """)
    }

    @Test func `a reused connection has no connection steps`() {
        var metrics = TransferMetrics()
        metrics.nameLookup = .zero
        metrics.connect = .zero
        metrics.isConnectionReused = true
        metrics.sendCount = 2
        let text = TraceTable.text(metrics, title: "")
        #expect(!text.contains("connect "))
        #expect(text.contains("  connection  reused, 2 attempts\n"))
    }
}
