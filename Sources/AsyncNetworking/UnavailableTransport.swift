// SPDX-License-Identifier: MIT

import ANHTTP

/// A transport that fails every request with the error that prevented the creation of a real one.
struct UnavailableTransport: Transport {
    let error: TransportError

    func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        throw error
    }

    func shutdown() async {}
}
