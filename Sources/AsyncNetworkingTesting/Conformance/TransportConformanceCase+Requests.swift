// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes

extension TransportConformanceCase {
    /// The cases about sending requests.
    static let requests = [
        TransportConformanceCase("method, target and fields are sent as given", .status(204)) { fixture in
            try await fixture.collect(
                fixture.request { request in
                    request.method = .patch
                    request.url = URL(string: request.url.absoluteString + "/%C3%A4?a=b%20c&d") ?? request.url
                    request.headers.append(HTTPField(name: .cookie, value: "a=1"))
                    request.headers.append(HTTPField(name: .accept, value: "text/html"))
                    request.headers.append(HTTPField(name: .accept, value: "*/*"))
                })
            guard let request = try await fixture.requests(1).first else { return }
            try require("The method", request.method, is: "PATCH")
            try require("The target", request.target, is: "/conformance/%C3%A4?a=b%20c&d")
            let fields = request.headers.filter { ["cookie", "accept"].contains($0.name.lowercased()) }
            try require("The fields", fields.map(\.value), is: ["a=1", "text/html", "*/*"])
        },

        TransportConformanceCase("a body in memory is sent completely", .status(204)) { fixture in
            try await fixture.collect(
                fixture.request { request in
                    request.method = .put
                    request.body = .bytes(StubServer.generatedBytes(500_000))
                })
            let body = try await fixture.requests(1).first?.body
            try require("The body is complete", body == StubServer.generatedBytes(500_000), is: true)
        },

        TransportConformanceCase("a streamed body of known length is sent completely", .status(204)) { fixture in
            try await fixture.collect(
                fixture.request { request in
                    request.method = .post
                    request.body = .stream(Pieces(count: 50, size: 10_000), length: 500_000)
                })
            let body = try await fixture.requests(1).first?.body
            try require("The body is complete", body == Pieces(count: 50, size: 10_000).joined, is: true)
        },

        TransportConformanceCase("a streamed body of unknown length is sent completely", .status(204)) { fixture in
            try await fixture.collect(
                fixture.request { request in
                    request.method = .post
                    request.body = .stream(Pieces(count: 7, size: 3))
                })
            try require("The body", try await fixture.requests(1).first?.body, is: Pieces(count: 7, size: 3).joined)
        },

        TransportConformanceCase("a failing source fails the request", .status(204)) { fixture in
            try await requireFailure(
                "Sending", .requestBody(.source(Pieces.Failed())),
                of: {
                    try await fixture.collect(
                        fixture.request { request in
                            request.method = .post
                            request.body = .stream(Pieces(count: 2, size: 10, fails: true), length: 100)
                        })
                })
        },

        TransportConformanceCase("a source shorter than declared fails the request", .status(204)) { fixture in
            try await requireFailure(
                "Sending", .requestBody(.tooShort(declared: 100, produced: 20)),
                of: {
                    try await fixture.collect(
                        fixture.request { request in
                            request.method = .post
                            request.body = .stream(Pieces(count: 2, size: 10), length: 100)
                        })
                })
        },

        TransportConformanceCase("a missing file fails the request", .status(204)) { fixture in
            try await requireFailure(
                "Sending",
                where: { if case .requestBody(.file) = ($0 as? TransportError)?.reason { true } else { false } },
                of: {
                    try await fixture.collect(
                        fixture.request { request in
                            request.method = .put
                            request.body = .file("/nonexistent/file")
                        })
                })
        },

        TransportConformanceCase("a URL of another scheme, or without a host, is not requested", .status(204)) {
            fixture in
            let urls: [(String, TransportError.Reason)] = [
                ("ftp://127.0.0.1/", .unsupportedScheme("ftp")), ("/a", .unsupportedScheme("")),
                ("http:///a", .invalidURL("http:…")),
            ]
            for (text, reason) in urls {
                try await requireFailure(
                    "A request to \(text)", reason,
                    of: { try await fixture.collect(fixture.request { $0.url = URL(string: text) ?? $0.url }) })
            }
        },

        TransportConformanceCase("a field that does not fit the body fails the request", .status(204)) { fixture in
            let bodies: [(RequestBody, HTTPFields)] = [
                (.none, [.contentLength: "1"]), (.string("abc"), [.contentLength: "4"]),
                (.string("abc"), [.contentLength: "03"]), (.string("abc"), [.transferEncoding: "chunked"]),
                (.stream(Pieces(count: 1, size: 3)), [.contentLength: "3"]),
                (.stream(Pieces(count: 1, size: 3)), [.transferEncoding: "gzip, chunked"]),
            ]
            for (body, headers) in bodies {
                try await requireFailure(
                    "A body with \(headers)",
                    where: {
                        if case .invalidRequest = ($0 as? TransportError)?.reason { true } else { false }
                    },
                    of: {
                        try await fixture.collect(
                            fixture.request { ($0.method, $0.body, $0.headers) = (.post, body, headers) })
                    })
            }
            try await fixture.collect(
                fixture.request {
                    ($0.method, $0.body, $0.headers) = (.post, .string("abc"), [.contentLength: "3"])
                })
            try require("The number of requests", try await fixture.requests(1).count, is: 1)
        },

        TransportConformanceCase("a field that cannot be a trailer fails the request", .status(204)) { fixture in
            try await requireFailure(
                "A trailer",
                where: {
                    guard case .requestBody(.source(let cause)) = ($0 as? TransportError)?.reason,
                        case .invalidRequest = (cause as? TransportError)?.reason
                    else { return false }
                    return true
                },
                of: {
                    try await fixture.collect(
                        fixture.request {
                            ($0.method, $0.body, $0.trailers) = (.post, .string("abc"), { [.contentLength: "3"] })
                        })
                })
        },
    ]
}

/// A body of chunks, each filled with its number.
private struct Pieces: AsyncSequence, Sendable {
    let count: Int
    let size: Int
    var fails = false

    var joined: Data {
        (0..<count).reduce(into: Data()) { $0 += Self.piece($1, size: size) }
    }

    static func piece(_ number: Int, size: Int) -> Data {
        Data(repeating: UInt8(truncatingIfNeeded: number), count: size)
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(pieces: self)
    }

    struct Iterator: AsyncIteratorProtocol {
        let pieces: Pieces
        var number = 0

        mutating func next() async throws -> Data? {
            guard number < pieces.count else {
                if pieces.fails { throw Failed() }
                return nil
            }
            defer { number += 1 }
            return Pieces.piece(number, size: pieces.size)
        }
    }

    struct Failed: Error {}
}
