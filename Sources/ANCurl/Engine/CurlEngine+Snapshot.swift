// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

extension EngineGroup {
    /// Returns the connections and exchanges of this moment.
    func snapshot() async -> TransportSnapshot {
        var whole = TransportSnapshot()
        for engine in engines {
            let part = await engine.snapshot()
            whole.connections += part.connections
            whole.exchanges += part.exchanges
        }
        return whole
    }
}

extension CurlEngine {
    /// Copies what is known of connections and exchanges; texts are made by the caller.
    ///
    /// The loop takes turns between small parts of the copy, so that no number of exchanges holds it up. Exchanges that
    /// begin or end meanwhile are missing.
    func snapshot() async -> TransportSnapshot {
        let start = MonotonicInstant.now
        let exchanges = Array(active.keys)
        var snapshot = TransportSnapshot()
        for first in stride(from: 0, to: state.connections.socketLimit, by: Self.snapshotPart) {
            snapshot.connections += state.connections.snapshot(first..<first + Self.snapshotPart, at: start)
            await Task.yield()
        }
        snapshot.exchanges.reserveCapacity(exchanges.count)
        for first in stride(from: 0, to: exchanges.count, by: Self.snapshotPart) {
            let now = MonotonicInstant.now
            for id in exchanges[first...].prefix(Self.snapshotPart) {
                guard let transfer = active[id] else { continue }
                // A connection that is newer than the snapshot may have the number of one in it.
                let socket = transfer.state.connection.socket.flatMap {
                    state.connections.contains($0, openedBy: start) ? $0 : nil
                }
                snapshot.exchanges.append(transfer.snapshot(on: socket, at: now))
            }
            await Task.yield()
        }
        // An idle connection that its server has closed stays until libcurl looks for one.
        let used = Set(snapshot.exchanges.compactMap(\.connection))
        snapshot.connections.removeAll { !used.contains($0.id) && Transfer.hasEnded($0.id) }
        return snapshot
    }

    /// The number of connections or exchanges that are copied in a turn, in a tenth of a millisecond.
    private static let snapshotPart = 64
}

extension Transfer {
    fileprivate func snapshot(on socket: Int32?, at now: MonotonicInstant) -> TransportSnapshot.Exchange {
        TransportSnapshot.Exchange(
            exchange.request, origin: origin, connection: socket, phase: timeoutPhase,
            elapsed: state.clock.start.duration(to: now), sent: uploadProgress, received: downloadProgress)
    }
}
