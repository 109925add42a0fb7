// SPDX-License-Identifier: MIT

import AsyncNetworking
import Fetch
import Testing

@Suite struct ExitStatusTests {
    /// Errors with the exit statuses of libcurl-errors(3) and, for signals, of shells.
    private static let table: [(any Error & Sendable, Int32)] = {
        let facts = TransferFacts()
        return [
            (SessionError.serialization(.url(.scheme("ftp", url: "ftp://x"))), 1),
            (UsageError("x"), 2),
            (SerializationError.url(.noHost("http://")), 3),
            (SessionError.transport(.unsupported(.http3)), 4),
            (SessionError.transport(.cannotResolve(host: "x", facts)), 6),
            (SessionError.transport(.cannotConnect(.refused, facts)), 7),
            (SessionError.transport(.invalidResponse(.notHTTP, facts)), 8),
            (SessionError.transport(.connectionLost(.inBody(received: 1, expected: 2), facts)), 18),
            (SessionError.transport(.requestBody(.file(path: "x", reason: "gone"), facts)), 26),
            (SessionError.transport(.timedOut(.connect, limit: .seconds(1), facts)), 28),
            (SessionError.transport(.tls(.handshake, facts)), 35),
            (SessionError.redirect(.tooMany(limit: 20)), 47),
            (SessionError.transport(.connectionLost(.beforeResponse, facts)), 52),
            (SessionError.transport(.connectionLost(.whileSending, facts)), 55),
            (SessionError.transport(.connectionLost(.inHead, facts)), 56),
            (SessionError.transport(.tls(.selfSigned, facts)), 60),
            (SessionError.transport(.tls(.wrongHost, facts)), 60),
            (SessionError.transport(.invalidResponse(.contentEncoding, facts)), 61),
            (SessionError.transport(.responseTooLarge(.body(limit: 1), facts)), 63),
            (SessionError.redirect(.bodyNotReplayable), 65),
            (SessionError.transport(.tls(.badTrustRoots, facts)), 77),
            (SessionError.transport(.proxy(.handshake, facts)), 97),
            (CancellationError(), 130),
        ]
    }()

    @Test(arguments: table.indices)
    func `errors have the exit statuses of curl`(row: Int) {
        let (error, number) = Self.table[row]
        #expect(ExitStatus(for: error).rawValue == number, "\(error)")
    }
}
