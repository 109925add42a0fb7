// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

extension CurlTransport {
    /// Sends a request, and again with the answer if the server challenges it by Digest.
    ///
    /// A request with a body is sent without it at first.
    ///
    /// | response | then |
    /// |---|---|
    /// | to the answer | it is the response |
    /// | 401 with a challenge that can be answered, if the body can be sent again or was not sent | the request is sent with the answer |
    /// | any other to the request without its body, except 401, 407, 429 and 503 | the request is sent with its body |
    /// | any other | it is the response |
    func openAnswering(
        _ request: Request, with credential: Credential, _ delivery: BodyDelivery, _ events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        try credential.check(for: "Authorization")
        let start = MonotonicInstant.now
        var plain = request
        plain.transportAuthentication?.server = nil
        plain.url = plain.url.withoutDotSegments.withoutEmptyQuery
        var probe = plain.withoutBody
        while true {
            let (isProbe, isReplayable, bytes) = (probe != nil, plain.body.isReplayable, plain.body.bytes)
            let react: @Sendable (ResponseHead) -> ChallengeReaction = { head in
                if head.status.code == 401, isProbe || isReplayable,
                    let challenge = DigestChallenge.first(
                        in: head.headers[values: .wwwAuthenticate], knowsBody: bytes != nil, if: DigestAnswer.isPossible
                    )
                {
                    return .answer(challenge)
                }
                let isFinal = [401, 407, 429, 503].contains(head.status.code)
                return isProbe && !isFinal ? .send : .none
            }
            // The body of a response that may be dropped is not collected.
            let (exchange, head) = try await perform(
                probe ?? plain, isProbe ? .streamed : delivery,
                events.map { HeadSink(passingTo: $0, passesProgress: !isProbe) { react($0) == .none } })
            let reaction = react(head)
            switch reaction {
            case .none: return exchange.response(head)
            case .send: break
            case .answer(let challenge):
                guard
                    let answer = DigestAnswer(
                        to: challenge, with: credential, method: plain.method.rawValue, target: plain.digestTarget,
                        body: bytes)
                else { return exchange.response(head) }
                plain.headers[.authorization] = answer.field
            }
            // Below 300 a body may be as long as that of any response.
            if head.status.code >= 300 { await exchange.receiveRest() }
            await exchange.close()
            probe = nil
            plain.shortenTotal(by: start.duration(to: .now), of: request, from: defaultOptions)
            if reaction == .send { continue }
            let (answered, last) = try await perform(plain, delivery, events)
            return answered.response(last)
        }
    }
}

/// The reaction to the response to a request without a credential.
private enum ChallengeReaction: Equatable {
    /// Nothing: it is the response.
    case none
    /// The request with the answer to the challenge.
    case answer(DigestChallenge)
    /// The request with its body.
    case send
}

extension URL {
    /// The URL without a question mark that nothing follows, which some versions of libcurl (8.14) do not send.
    fileprivate var withoutEmptyQuery: URL {
        guard query(percentEncoded: true)?.isEmpty == true, absoluteString.hasSuffix("?") else { return self }
        return URL(string: String(absoluteString.dropLast())) ?? self
    }
}

extension Request {
    /// The path and query of a URL without dot segments, as they are sent: with a path.
    fileprivate var digestTarget: String {
        let path = url.path(percentEncoded: true)
        return (path.isEmpty ? "/" : path) + (url.query(percentEncoded: true).map { "?" + $0 } ?? "")
    }

    /// The request with an empty body; `nil` if it has no body.
    fileprivate var withoutBody: Request? {
        // An empty body is sent at once: the request without it would be the same.
        if body.length == 0 { return nil }
        var request = self
        request.body = .bytes(Data())
        request.trailers = nil
        for name in [HTTPField.Name.expect, .contentLength, .transferEncoding, .contentEncoding, .contentDigest] {
            request.headers[name] = nil
        }
        return request
    }

    /// Leaves only the rest of the time for the whole exchange.
    fileprivate mutating func shortenTotal(
        by elapsed: Duration, of original: Request, from defaults: SharedTransferOptions
    ) {
        var options = (original.sharedOptions ?? defaults).value
        guard let total = options.timeouts.total else { return }
        options.timeouts.total = max(.milliseconds(1), total - elapsed)
        self.options = options
    }
}

/// A sink for the events of an exchange that are passed on only if the response is the caller's.
private final class HeadSink: ExchangeEventSink {
    private let next: any ExchangeEventSink
    private let passesProgress: Bool
    private let isPassed: @Sendable (ResponseHead) -> Bool
    private let state = Lock(State.undecided([]))

    private enum State: Sendable {
        /// There is no head, only these events.
        case undecided([ExchangeEvent])
        case passing
        case discarding
    }

    /// - Parameter passesProgress: Whether the request has the caller's body, whose progress is passed on at once.
    init(
        passingTo next: any ExchangeEventSink, passesProgress: Bool,
        if isPassed: @escaping @Sendable (ResponseHead) -> Bool
    ) {
        self.next = next
        self.passesProgress = passesProgress
        self.isPassed = isPassed
    }

    func receive(_ event: ExchangeEvent) {
        let events = state.withLock { state -> [ExchangeEvent] in
            switch (state, event) {
            case (.passing, _): return [event]
            case (.discarding, _): return []
            case (.undecided(let held), .head(let head)):
                let isPassed = isPassed(head)
                state = isPassed ? .passing : .discarding
                return isPassed ? held + [event] : []
            case (.undecided(let held), .finished):
                state = .passing
                return held + [event]
            case (.undecided, .uploadProgress) where passesProgress:
                return [event]
            case (.undecided(var held), _):
                // So that the events are not copied.
                state = .discarding
                held.append(event)
                state = .undecided(held)
                return []
            }
        }
        for event in events { next.receive(event) }
    }
}
