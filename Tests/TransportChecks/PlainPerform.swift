// SPDX-License-Identifier: MIT

import ANHTTP

// `make check-transports` expects that this does not compile without NonisolatedNonsendingByDefault, where `body` has another
// type than the protocol's, and that it compiles with it.
struct PlainPerform: Transport {
    func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {}

    func shutdown() async {}
}
