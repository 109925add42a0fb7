// SPDX-License-Identifier: MIT

import ANHTTP

// `make check-transports` expects that this compiles only with NonisolatedNonsendingByDefault. Without it, the type of
// `body` differs from the protocol's.
struct PlainPerform: Transport {
    func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {}

    func shutdown() async {}
}
