// SPDX-License-Identifier: MIT

import ANHTTP

// `make check-transports` expects that this compiles in every module.
struct SpelledPerform: Transport {
    func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {}

    func shutdown() async {}
}
