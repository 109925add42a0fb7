// SPDX-License-Identifier: MIT

import AsyncNetworking
import Fetch
import Testing

@Suite struct ExitStatusTests {
    /// Errors with the exit statuses of libcurl-errors(3) and, for signals, of shells.
    private static let table: [(any Error & Sendable, Int32)] = {
        let context = FailureContext()
        return [
            (SessionError.serialization(.url(.scheme("ftp", url: "ftp://x"))), 1),
            (UsageError("x"), 2),
            (SerializationError.url(.noHost("http://")), 3),
            (SessionError.transport(.unsupported(.http3)), 4),
            (SessionError.transport(.cannotResolve(host: "x", context)), 6),
            (SessionError.transport(.cannotConnect(.refused, context)), 7),
            (SessionError.transport(.invalidResponse(.notHTTP, context)), 8),
            (SessionError.transport(.connectionLost(.inBody(received: 1, expected: 2), context)), 18),
            (SessionError.transport(.requestBody(.file(path: "x", reason: "gone"), context)), 26),
            (SessionError.transport(.timedOut(.connect, limit: .seconds(1), context)), 28),
            (SessionError.transport(.tls(.handshake, context)), 35),
            (SessionError.redirect(.tooMany(limit: 20)), 47),
            (SessionError.transport(.connectionLost(.beforeResponse, context)), 52),
            (SessionError.transport(.connectionLost(.whileSending, context)), 55),
            (SessionError.transport(.connectionLost(.inHead, context)), 56),
            (SessionError.transport(.tls(.selfSigned, context)), 60),
            (SessionError.transport(.tls(.wrongHost, context)), 60),
            (SessionError.transport(.invalidResponse(.contentEncoding, context)), 61),
            (SessionError.transport(.responseTooLarge(.body(limit: 1), context)), 63),
            (SessionError.redirect(.bodyNotReplayable), 65),
            (SessionError.transport(.tls(.badTrustRoots, context)), 77),
            (SessionError.transport(.proxy(.handshake, context)), 97),
            (CancellationError(), 130),
        ]
    }()

    @Test(arguments: table.indices)
    func `errors have the exit statuses of curl`(row: Int) {
        let (error, number) = Self.table[row]
        #expect(ExitStatus(for: error).rawValue == number, "\(error)")
    }
}
