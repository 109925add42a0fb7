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
    /// | 401 with a challenge that can be answered, if the body can be sent again or was not sent | the request is sent with the answer |
    /// | 401 to the answer, with another nonce because that of the answer has expired, if the body can be sent again | the request is sent with a second answer |
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
        let probe = plain.withoutBody
        var stage = probe == nil ? DigestStage.plain : .probe
        while true {
            let (current, isReplayable, bytes) = (stage, plain.body.isReplayable, plain.body.bytes)
            let react: @Sendable (ResponseHead) -> DigestStage? = { head in
                current.next(after: head, isReplayable: isReplayable, knowsBody: bytes != nil)
            }
            let isProbe = current == .probe
            let isLast = current.isLast || !isProbe && !isReplayable
            // The body of a response that may be dropped is not collected.
            let (exchange, head) = try await perform(
                isProbe ? probe ?? plain : plain, isProbe ? .streamed : delivery,
                isLast ? events : events.map { HeadSink(passingTo: $0, passesProgress: !isProbe) { react($0) == nil } })
            guard let next = react(head) else { return exchange.response(head) }
            if let challenge = next.challenge {
                guard
                    let answer = DigestAnswer(
                        to: challenge, with: credential, method: plain.method.rawValue, target: plain.digestTarget,
                        body: bytes)
                else { return exchange.response(head) }
                plain.headers[fields: .authorization] = [answer.field]
            }
            // Below 300 a body may be as long as that of any response.
            if head.status.code >= 300 { await exchange.receiveRest() }
            await exchange.close()
            plain.shortenTotal(by: start.duration(to: .now), of: request, from: defaultOptions)
            stage = next
        }
    }
}

/// The form in which a request is sent.
private enum DigestStage: Equatable {
    /// Without its body, and without a credential.
    case probe
    /// With its body, and without a credential.
    case plain
    /// With the answer to a challenge.
    case answer(DigestChallenge)
    /// With the answer to another challenge, because the nonce of the first one had expired.
    case lastAnswer(DigestChallenge)

    /// Whether the response is that of the exchange in any case.
    var isLast: Bool { if case .lastAnswer = self { true } else { false } }

    /// The challenge that is answered; `nil` for none.
    var challenge: DigestChallenge? {
        switch self {
        case .probe, .plain: nil
        case .answer(let challenge), .lastAnswer(let challenge): challenge
        }
    }

    /// Returns the form in which the request is sent after a response; `nil` if that is the response.
    func next(after head: ResponseHead, isReplayable: Bool, knowsBody: Bool) -> DigestStage? {
        var challenge: DigestChallenge? {
            guard head.status.code == 401, isReplayable || self == .probe else { return nil }
            return DigestChallenge.first(
                in: head.headers[fields: .wwwAuthenticate].map(\.byteText), knowsBody: knowsBody,
                if: DigestAnswer.isPossible)
        }
        switch self {
        case .probe:
            if let challenge { return .answer(challenge) }
            return [401, 407, 429, 503].contains(head.status.code) ? nil : .plain
        case .plain: return challenge.map { .answer($0) }
        case .answer(let last):
            guard let challenge, challenge.isStale, challenge.nonce != last.nonce else { return nil }
            return .lastAnswer(challenge)
        case .lastAnswer: return nil
        }
    }
}

extension URL {
    /// The URL without a question mark that nothing or a fragment follows, which some versions of libcurl (8.14, 8.16) do not
    /// send.
    fileprivate var withoutEmptyQuery: URL {
        guard query(percentEncoded: true)?.isEmpty == true else { return self }
        return URL(string: String(absoluteString.unicodeScalars.prefix { $0 != "?" })) ?? self
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
    mutating func shortenTotal(
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
