// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct WaterfallTests {
    /// 1,000 requests to five hosts, some of which fail, with texts that a page must not interpret.
    static func archive() throws -> HAR {
        HAR(
            entries: try (0..<1_000).map { index in
                var request = Request(
                    method: index % 7 == 0 ? .post : .get,
                    url: try url("https://host\(index % 5).example/items/\(index)?page=\(index % 13)"),
                    headers: [.accept: "<b>&amp;</b>"])
                request.body = .string("{}")
                var metrics = TransferMetrics()
                metrics.queued = .milliseconds(index % 4)
                if index % 3 == 0 {
                    metrics.nameLookup = metrics.queued + .milliseconds(4)
                    metrics.connect = metrics.queued + .milliseconds(12)
                    metrics.tlsHandshake = metrics.queued + .milliseconds(30)
                } else {
                    metrics.isConnectionReused = true
                }
                metrics.requestStart = (metrics.tlsHandshake ?? metrics.queued) + .milliseconds(1)
                metrics.firstByte = metrics.requestStart.map { $0 + .milliseconds(20 + index % 17) }
                metrics.total = .milliseconds(80 + index % 11)
                let status = index % 10 == 0 ? HTTPResponse.Status.notFound : .ok
                var response = HAR.Response(
                    ResponseHead(status: status, headers: [.contentType: "text/html"], url: request.url))
                response.content.text = "</script><img src=x onerror=alert(1)> \(index)"
                if index % 50 == 49 { response = HAR.Response() }
                let date = Date(timeIntervalSince1970: 1_780_000_000 + Double(index ^ 1) / 100)
                var entry = HAR.Entry(
                    startedDateTime: date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
                    request: HAR.Request(request), response: response, timings: HAR.Timings(metrics))
                if response.status == 0 { entry.error = "no connection" }
                return entry
            })
    }

    @Test func `the policy of a page permits its own script only`() throws {
        let page = try Self.archive().html()
        let start = try #require(page.utf8.firstRange(of: "<script>".utf8)).upperBound
        let script = try #require(page[start...].split(separator: "</script>").first)
        let digest = MessageDigest(.sha256)
        digest.update(Data(script.utf8).bytes)
        let hash = try #require(digest.value.map { Data($0).base64EncodedString() })
        #expect(page.contains("script-src 'sha256-\(hash)'\">"))
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/chromium"), "chromium is missing"))
    func `a browser shows all requests of a page without errors, at all widths`() async throws {
        let directory = try TemporaryDirectory()
        let page = try directory.write(Data(Self.archive().html(title: "1,000 requests").utf8), to: "page.html")
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized.path
        let outcome = try await Command("python3", "\(root)/scripts/site", "waterfall", page).run()
        #expect(outcome.status == 0, "\(outcome.text)")
    }
}
