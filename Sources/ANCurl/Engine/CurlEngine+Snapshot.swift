// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem

extension CurlTransport: InspectableTransport {
    /// Returns the connections and exchanges of this moment.
    package func snapshot() async -> TransportSnapshot { await engine.snapshot() }
}

extension CurlEngine {
    /// Copies what is known of connections and exchanges; texts are made by the caller.
    func snapshot() -> TransportSnapshot {
        let now = MonotonicInstant.now
        var snapshot = TransportSnapshot()
        snapshot.connections = state.connections.snapshot(at: now)
        snapshot.exchanges = active.values.map { $0.snapshot(at: now) }
        return snapshot
    }
}

extension Transfer {
    fileprivate func snapshot(at now: MonotonicInstant) -> TransportSnapshot.Exchange {
        TransportSnapshot.Exchange(
            exchange.request, origin: origin, connection: state.connection.socket, phase: timeoutPhase,
            elapsed: state.clock.start.duration(to: now), sent: uploadProgress, received: downloadProgress)
    }
}
