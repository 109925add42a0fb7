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

    package func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        events?.receive(.finished(TransferMetrics()))
        return OpenResponse(
            head: ResponseHead(status: .ok, headers: headers, url: request.url), body: ResponseBody(answer))
    }

    package func shutdown() async {}
}
