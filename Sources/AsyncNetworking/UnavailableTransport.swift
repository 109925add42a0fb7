// SPDX-License-Identifier: MIT

import ANHTTP

/// Stands where no transport could be made, and says why to every request.
struct UnavailableTransport: Transport {
    let error: TransportError

    func perform<Value: Sendable>(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        throw error
    }

    func shutdown() async {}
}
