// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes

extension TransportConformanceCase {
    /// The cases about receiving responses.
    static let responses = [
        TransportConformanceCase(
            "the head is available before the body",
            gated: { gate in
                Script([
                    .reply(Reply(framing: .contentLength(declared: 4))), .wait(gate), .send(Data("body".utf8)),
                ])
            }
        ) { fixture in
            let text = try await fixture.stream { head, body in
                try require("The status", head.status.code, is: 200)
                fixture.gate.open()
                return String(decoding: try await body.collect(upTo: 10), as: UTF8.self)
            }
            try require("The body", text, is: "body")
        },

        TransportConformanceCase(
            "a response that may be discarded does not wait for its body",
            gated: { gate in
                Script([
                    .reply(Reply(status: 503, framing: .contentLength(declared: 4))), .wait(gate),
                    .send(Data("body".utf8)),
                ])
            }
        ) { fixture in
            let text = try await fixture.transport.withResponse(
                for: fixture.request(), delivery: .collected(upTo: 10)
            ) { head, body in
                try require("The status", head.status.code, is: 503)
                fixture.gate.open()
                return String(decoding: try await body.collect(upTo: 10), as: UTF8.self)
            }
            try require("The body", text, is: "body")
        },

        TransportConformanceCase("a body within the limit is collected", .generated(300_000)) { fixture in
            let (head, body) = try await fixture.collect(limit: 300_000)
            try require("The status", head.status.code, is: 200)
            try require("The body is complete", body == StubServer.generatedBytes(300_000), is: true)
        },

        TransportConformanceCase("an empty body is collected", .status(200)) { fixture in
            try require("The body", try await fixture.collect(limit: 0).body, is: Data())
        },

        TransportConformanceCase(
            "a body above the limit fails", .generated(300_001, framing: .chunked)
        ) { fixture in
            try await requireFailure(
                "Collecting", .responseTooLarge(.body(limit: 300_000)),
                of: { try await fixture.collect(limit: 300_000) })
        },

        TransportConformanceCase("a streamed body is complete and in order", .generated(2_000_000, framing: .chunked)) {
            fixture in
            let body = try await fixture.stream { _, body in
                var sum = Data()
                for try await chunk in body {
                    guard !chunk.isEmpty else { throw ConformanceError("A chunk is empty.") }
                    sum += chunk
                }
                return sum
            }
            try require("The body is complete", body == StubServer.generatedBytes(2_000_000), is: true)
        },

        TransportConformanceCase(
            "repeated fields are separate and in order",
            .status(200, headers: ["Set-Cookie": "a=1", "X-Other": "", "set-cookie": "b=2, c", "Set-Cookie": "a=3"])
        ) { fixture in
            let (head, _) = try await fixture.collect()
            try require("Set-Cookie", head.headers[values: .setCookie], is: ["a=1", "b=2, c", "a=3"])
            try require("The empty field", head.headers[fields: .other].map(\.value), is: [""])
        },

        TransportConformanceCase("a response to HEAD has no body", .generated(10)) { fixture in
            let (head, body) = try await fixture.collect(fixture.request { $0.method = .head })
            try require("Content-Length", head.headers[.contentLength], is: "10")
            try require("The body", body, is: Data())
        },

        TransportConformanceCase("a 204 has no body", .status(204)) { fixture in
            let (head, body) = try await fixture.collect()
            try require("The status", head.status.code, is: 204)
            try require("The body", body, is: Data())
        },

        TransportConformanceCase("a 304 has no body", .status(304, headers: ["Content-Length": "5"])) { fixture in
            let (head, body) = try await fixture.collect()
            try require("The status", head.status.code, is: 304)
            try require("The body", body, is: Data())
        },

        TransportConformanceCase("a redirect is not followed", .redirect(302, to: "/elsewhere")) { fixture in
            try require("The status", try await fixture.collect().head.status.code, is: 302)
            try require("Requests", try await fixture.requests(1).count, is: 1)
        },

        TransportConformanceCase(
            "trailers are available at the end of the body",
            .reply(body: .string("abc"), framing: .chunked, trailers: ["X-Other": "1"])
        ) { fixture in
            try await fixture.stream { _, body in
                guard body.trailers == nil else { throw ConformanceError("Trailers are available before the end.") }
                try require("The body", try await body.collect(upTo: 10), is: Data("abc".utf8))
                var chunks = body.makeAsyncIterator()
                try require("After the end", try await chunks.next(), is: nil)
                try require("The trailers", body.trailers?[.other], is: "1")
            }
        },

        TransportConformanceCase(
            "interim heads are reported before the final one",
            Script([
                .informational(103, headers: ["Link": "</a.css>"]), .informational(103, headers: ["Link": "</b.css>"]),
                .reply(Reply(body: .string("body"))),
            ])
        ) { fixture in
            let events = EventRecorder()
            try await fixture.stream(reporting: events) { head, body in
                try require("The status", head.status.code, is: 200)
                let links = events.informationalHeads.map { "\($0.status.code) \($0.headers[.link] ?? "-")" }
                try require("Interim heads", links, is: ["103 </a.css>", "103 </b.css>"])
                try require("The body", try await body.collect(upTo: 10), is: Data("body".utf8))
            }
        },

        TransportConformanceCase("a truncated body fails", .truncated(declared: 100, sent: 10)) { fixture in
            try await requireFailure(
                "Collecting", .connectionLost(.inBody(received: 10, expected: 100)), of: { try await fixture.collect() }
            )
        },

        TransportConformanceCase("a connection that ends without a response fails", .close) { fixture in
            try await requireFailure(
                "Collecting", .connectionLost(.beforeResponse),
                of: { try await fixture.collect(fixture.request { $0.method = .post }) })
        },
    ]
}

extension HTTPField.Name {
    /// The field name `X-Other`.
    fileprivate static var other: HTTPField.Name { HTTPField.Name(constant: "X-Other") }
    /// The field name `Link`.
    fileprivate static var link: HTTPField.Name { HTTPField.Name(constant: "Link") }
}
