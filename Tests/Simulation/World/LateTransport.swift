// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting

/// A transport that notices a cancellation only after some time, in which events, heads and bodies may still arrive.
final class LateTransport: Transport {
    private let base: any Transport
    private let world: SimulatedWorld
    private let ledger: Ledger

    init(_ base: any Transport, in world: SimulatedWorld, _ ledger: Ledger) {
        (self.base, self.world, self.ledger) = (base, world, ledger)
    }

    /// The longest time, in milliseconds.
    static let delay = 30

    func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        // Ends as the exchange does, or is cancelled after the delay.
        let exchange = Task { try await base.open(request, delivery: delivery, reporting: events) }
        return try await withTaskCancellationHandler {
            let response = try await exchange.value
            if Task.isCancelled { ledger.cover("late.response") }
            return response
        } onCancel: { [world] in
            let delay = Duration.milliseconds(world.random(in: 0...Self.delay))
            Task {
                try? await world.clock.sleep(for: delay)
                exchange.cancel()
            }
        }
    }

    func shutdown() async { await base.shutdown() }
}
