// SPDX-License-Identifier: MIT

import AsyncNetworking
import Fetch
import Testing

@Suite struct ExitStatusTests {
    /// Errors with the exit statuses of libcurl-errors(3) and, for signals, of shells.
    private static let table: [(any Error & Sendable, Int32)] = {
        func failed(_ reason: TransportError.Reason) -> SessionError { .transport(TransportError(reason)) }
        return [
            (SessionError.serialization(.url(.scheme("ftp", url: "ftp://x"))), 1),
            (UsageError("x"), 2),
            (SerializationError.url(.noHost("http://")), 3),
            (failed(.unsupported(.http3)), 4),
            (failed(.cannotResolve), 6),
            (failed(.cannotConnect(.refused)), 7),
            (failed(.invalidResponse(.notHTTP)), 8),
            (SessionError.upload(.server("x")), 8),
            (SessionError.upload(.outcomeUnknown), 8),
            (failed(.connectionLost(.inBody(received: 1, expected: 2))), 18),
            (failed(.requestBody(.file(path: "x", reason: "gone"))), 26),
            (SessionError.upload(.sourceChanged), 26),
            (SessionError.upload(.bodyNotResumable), 26),
            (failed(.timedOut(.connect)), 28),
            (failed(.tls(.handshake)), 35),
            (SessionError.redirect(.tooMany(limit: 20, to: "http://a.example/")), 47),
            (failed(.connectionLost(.beforeResponse)), 52),
            (failed(.connectionLost(.whileSending)), 55),
            (failed(.connectionLost(.inHead)), 56),
            (failed(.tls(.selfSigned)), 60),
            (failed(.tls(.wrongHost)), 60),
            (failed(.invalidContentEncoding), 61),
            (failed(.responseTooLarge(.body(limit: 1))), 63),
            (SessionError.upload(.tooLarge(maximum: 1)), 63),
            (SessionError.redirect(.bodyNotReplayable), 65),
            (failed(.webSocketClosed(nil)), 72),
            (failed(.tls(.badTrustRoots)), 77),
            (failed(.proxy(.handshake)), 97),
            (CancellationError(), 130),
        ]
    }()

    @Test(arguments: table.indices)
    func `errors have the exit statuses of curl`(row: Int) {
        let (error, number) = Self.table[row]
        #expect(ExitStatus(for: error).rawValue == number, "\(error)")
    }
}
