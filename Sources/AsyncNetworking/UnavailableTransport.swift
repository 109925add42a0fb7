// SPDX-License-Identifier: MIT

import ANHTTP

/// Stands where no transport could be made, and says why to every request.
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
