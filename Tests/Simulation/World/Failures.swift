// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// A failure of an exchange, and what follows from it by the documentation of retry policies, in a table that shares no
/// code with them.
struct Failure: Sendable {
    let reason: TransportError.Reason
    /// Whether the default policy sends the request again.
    let isRetriable: Bool
    /// Whether a server may have seen the request.
    let mayBeSeen: Bool

    private init(_ reason: TransportError.Reason, isRetriable: Bool, mayBeSeen: Bool) {
        (self.reason, self.isRetriable, self.mayBeSeen) = (reason, isRetriable, mayBeSeen)
    }

    /// Those before the request is sent.
    private static let ofConnections: [Failure] =
        ([
            (.cannotResolve, true), (.cannotConnect(.refused), true), (.cannotConnect(.unreachable), true),
            (.cannotConnect(.systemTimeout), true), (.cannotConnect(.other), true),
            (.cannotConnect(.localAddress), false), (.cannotConnect(.addressForbidden), false),
            (.proxy(.authenticationRequired), false), (.proxy(.tunnelRefused(status: 403)), false),
            (.proxy(.tunnelRefused(status: 503)), true), (.proxy(.handshake), true),
            (.proxy(.tls(.selfSigned)), false), (.tls(.handshake), true), (.tls(.certificateExpired), false),
            (.timedOut(.nameLookup), true), (.timedOut(.connect), true), (.timedOut(.tlsHandshake), true),
            (.timedOut(.queue), false),
        ] as [(TransportError.Reason, Bool)]).map { Failure($0.0, isRetriable: $0.1, mayBeSeen: false) }

    /// Those after the request was sent, wherever the response ends.
    private static let ofResponses: [Failure] =
        ([
            (.invalidResponse(.framing), false), (.responseTooLarge(.head(limit: 1)), false), (.shutDown, false),
        ] as [(TransportError.Reason, Bool)]).map { Failure($0.0, isRetriable: $0.1, mayBeSeen: true) }

    private static let ofHeads: [Failure] =
        ([
            (.connectionLost(.whileSending), true), (.connectionLost(.beforeResponse), true),
            (.connectionLost(.inHead), true), (.timedOut(.request), true), (.timedOut(.responseHead), true),
            (.tls(.clientCertificateRefused), false), (.invalidResponse(.notHTTP), false),
            (.invalidResponse(.contentLength), false), (.invalidResponse(.noFinalResponse), false),
        ] as [(TransportError.Reason, Bool)]).map { Failure($0.0, isRetriable: $0.1, mayBeSeen: true) }

    private static let ofBodies: [Failure] =
        ([
            (.timedOut(.responseBody), true), (.invalidContentEncoding, false),
            (.responseTooLarge(.decompressed(limit: 1)), false),
        ] as [(TransportError.Reason, Bool)]).map { Failure($0.0, isRetriable: $0.1, mayBeSeen: true) }

    /// The places of an exchange.
    enum Place: String, CaseIterable, Sendable {
        /// Before the request is sent; after it, perhaps after an interim response; in the body; after all of the body.
        case connection, head, body, end
    }

    /// Returns a failure at a place, after a number of bytes of the body.
    static func random(at place: Place, after received: Int64, of expected: Int64?, in world: SimulatedWorld) -> Failure
    {
        let failures =
            switch place {
            case .connection: ofConnections
            case .head: ofHeads + ofResponses
            case .body, .end:
                ofBodies + ofResponses + [
                    Failure(
                        .connectionLost(.inBody(received: received, expected: expected)), isRetriable: true,
                        mayBeSeen: true)
                ]
            }
        return failures[world.random(in: 0...failures.count - 1)]
    }
}

/// The bodies of responses to requests that servers reject.
enum ErrorPage {
    static let statuses = [400, 403, 413, 500, 503]

    static func chunks(_ status: Int) -> [Data] { (0..<4).map { Data("Part \($0) of the page for \(status). ".utf8) } }

    static func whole(_ status: Int) -> Data { chunks(status).reduce(Data(), +) }
}

extension Oracles {
    /// A call ends by the failure of its last exchange, and no request is sent again after a failure that would happen
    /// again, nor left after one that the policy retries.
    static func failures(of call: Program.Call, _ program: Program, _ ledger: Ledger) {
        guard program.family == .failures, let ending = ledger.facts.calls[call.number], ending.cancelled == nil,
            ledger.facts.sessionClosed == nil, call.timeout == nil
        else { return }
        let arrivals = ledger.arrivals(of: call.number).filter { !$0.isForgotten }
        for arrival in arrivals.dropLast() {
            guard let failure = arrival.failure, !failure.isRetriable else { continue }
            ledger.violate(7, "call \(call.number) is sent again after \(failure.reason)")
        }
        // A program may have read less than what fails.
        guard let last = arrivals.last, let failure = last.failure, call.kind != .streamed || call.count > 1 else {
            return
        }
        ledger.cover("oracle.7.failure")
        guard ending.reason == failure.reason else {
            let end = ending.failure == nil ? "success" : "\(String(describing: ending.reason))"
            return ledger.violate(7, "call \(call.number) ends with \(end) after \(failure.reason)")
        }
        let limit = call.retryLimit ?? program.settings.retryLimit
        let isOneRequest = last.request.url.absoluteString == Resource(call.host, call.resource, seed: program.seed).url
        let mayBeRepeated =
            ![.post, .patch].contains(call.method) || call.hasIdempotencyKey || isOneRequest && !failure.mayBeSeen
        let isCollected = call.kind == .data || call.kind == .upload && call.body != .task
        guard !program.settings.hasRetryBudget, failure.isRetriable, mayBeRepeated,
            arrivals[0].request.body.isReplayable,
            isCollected || !last.hasHead && call.kind != .download, let earlier = ending.earlierAttempts
        else { return }
        ledger.cover("oracle.7.failureRetried")
        if earlier < limit {
            ledger.violate(7, "call \(call.number) ends after \(earlier) of \(limit) retries, with \(failure.reason)")
        }
    }
}
