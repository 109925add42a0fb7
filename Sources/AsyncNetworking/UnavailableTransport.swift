// SPDX-License-Identifier: MIT

import ANHTTP

/// A transport that fails every request with the error that prevented the creation of a real one.
struct UnavailableTransport: Transport {
    let error: TransportError

    func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?
    ) async throws -> OpenResponse {
        throw error
    }

    func shutdown() async {}
}
