// SPDX-License-Identifier: MIT

/// The connections and exchanges of a transport at one moment.
package struct TransportSnapshot: Sendable {
    package var connections: [Connection] = []
    package var exchanges: [Exchange] = []

    package init() {}

    /// An open connection that has carried a request. Those over QUIC are not known.
    package struct Connection: Sendable {
        /// Identifies the connection within the snapshot.
        package let id: Int32
        /// The scheme, host and port of the first request.
        package let origin: String
        /// The address of the server or proxy.
        package let address: SocketAddress
        package let version: HTTPVersion
        /// The time since the connection was established.
        package let age: Duration
        /// The time since the end of the last exchange; `nil` before one has ended.
        package let sinceLastEnd: Duration?

        package init(
            id: Int32, origin: String, address: SocketAddress, version: HTTPVersion, age: Duration,
            sinceLastEnd: Duration?
        ) {
            self.id = id
            self.origin = origin
            self.address = address
            self.version = version
            self.age = age
            self.sinceLastEnd = sinceLastEnd
        }
    }

    /// An exchange that has not ended.
    package struct Exchange: Sendable {
        package let request: Request
        package let origin: String
        /// The ``Connection/id`` of its connection; `nil` before it has one, and over QUIC.
        package let connection: Int32?
        package let phase: TransportError.TimeoutPhase
        /// The time since its beginning.
        package let elapsed: Duration
        package let sent: TransferProgress
        package let received: TransferProgress

        package init(
            _ request: Request, origin: String, connection: Int32?, phase: TransportError.TimeoutPhase,
            elapsed: Duration, sent: TransferProgress = TransferProgress(completedBytes: 0, totalBytes: nil),
            received: TransferProgress = TransferProgress(completedBytes: 0, totalBytes: nil)
        ) {
            self.request = request
            self.origin = origin
            self.connection = connection
            self.phase = phase
            self.elapsed = elapsed
            self.sent = sent
            self.received = received
        }
    }
}
