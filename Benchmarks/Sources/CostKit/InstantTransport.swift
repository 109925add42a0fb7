// SPDX-License-Identifier: MIT

package import AsyncNetworking
import FoundationEssentials

/// A transport that responds immediately from memory.
package struct InstantTransport: Transport {
    private let answer: Data
    private let headers: HTTPFields

    package init(answer: Data = Data(), headers: HTTPFields = [:]) {
        self.answer = answer
        self.headers = headers
    }

    package func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        events?.receive(.finished(TransferMetrics()))
        try await body(ResponseHead(status: .ok, headers: headers, url: request.url), ResponseBody(answer))
    }

    package func shutdown() async {}
}
