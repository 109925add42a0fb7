// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

extension CurlTransport {
    /// Sends a request, and again with the answer if the server challenges it by Digest.
    ///
    /// A request with a body is sent without it at first, and then with it, whatever the server responds.
    ///
    /// | response to the first request | then |
    /// |---|---|
    /// | 401 with a challenge that can be answered | the request is sent with the answer, to which any response is the last |
    /// | another 401, or 407 | this is the response |
    /// | any other, if the request has no body | this is the response |
    /// | any other | the request is sent with its body |
    func openAnswering(
        _ request: Request, with credential: Credential, _ delivery: BodyDelivery, _ events: (any TransferEventSink)?
    ) async throws -> OpenResponse {
        try credential.check(for: "Authorization")
        let start = MonotonicInstant.now
        var plain = request
        plain.transportAuthentication?.server = nil
        let probe = plain.withoutBody
        let reaction: @Sendable (ResponseHead) -> ChallengeReaction = { [plain] head in
            if let answer = DigestAnswer(to: head, of: plain, with: credential) { return .answer(answer) }
            return probe == nil || head.status.code == 401 || head.status.code == 407 ? .none : .send
        }
        let (exchange, head) = try await perform(
            probe ?? plain, delivery, events.map { HeadSink(passingTo: $0) { reaction($0) == .none } })
        switch reaction(head) {
        case .none: return OpenResponse(head: head, body: ResponseBody(source: exchange))
        case .answer(let answer): plain.headers[.authorization] = answer.field
        case .send: break
        }
        await exchange.receiveRest()
        await exchange.close()
        plain.shortenTotal(by: start.duration(to: .now), from: defaultOptions)
        let (answered, last) = try await perform(plain, delivery, events)
        return OpenResponse(head: last, body: ResponseBody(source: answered))
    }
}

/// What follows the response to a request without a credential.
private enum ChallengeReaction: Equatable {
    /// Nothing: it is the response.
    case none
    /// The request with the answer to the challenge.
    case answer(DigestAnswer)
    /// The request with its body.
    case send
}

extension DigestAnswer {
    /// Creates the answer to the challenge of a response; `nil` if it has none that can be answered.
    fileprivate init?(to head: ResponseHead, of request: Request, with credential: Credential) {
        guard head.status.code == 401 else { return nil }
        // As libcurl sends them: with a path, and without dot segments.
        let hasDots = request.url.path(percentEncoded: true).contains("/.")
        let url = hasDots ? URL(reference: request.url.absoluteString, relativeTo: request.url) : nil
        let path = (url ?? request.url).path(percentEncoded: true)
        let query = request.url.query(percentEncoded: true).map { "?" + $0 } ?? ""
        let body: Data? =
            switch request.body.content {
            case .none: Data()
            case .bytes(let data): data
            default: nil
            }
        self.init(
            to: head.headers[values: .wwwAuthenticate], with: credential, method: request.method.rawValue,
            target: (path.isEmpty ? "/" : path) + query, body: body)
    }
}

extension Request {
    /// The request with an empty body; `nil` if it has no body.
    fileprivate var withoutBody: Request? {
        if case .none = body.content { return nil }
        var request = self
        request.body = .bytes(Data())
        request.trailers = nil
        for name in [HTTPField.Name.expect, .contentLength, .transferEncoding] { request.headers[name] = nil }
        return request
    }

    /// Leaves only the rest of the time for the whole exchange.
    fileprivate mutating func shortenTotal(by elapsed: Duration, from defaults: SharedTransferOptions) {
        var options = (sharedOptions ?? defaults).value
        guard let total = options.timeouts.total else { return }
        options.timeouts.total = max(.milliseconds(1), total - elapsed)
        self.options = options
    }
}

/// A sink for the events of an exchange that are passed on only if the response is the caller's.
private final class HeadSink: TransferEventSink {
    private let next: any TransferEventSink
    private let isPassed: @Sendable (ResponseHead) -> Bool
    private let state = Lock(State.undecided([]))

    private enum State: Sendable {
        /// There is no head, only these events.
        case undecided([TransferEvent])
        case passing
        case discarding
    }

    init(passingTo next: any TransferEventSink, if isPassed: @escaping @Sendable (ResponseHead) -> Bool) {
        self.next = next
        self.isPassed = isPassed
    }

    func receive(_ event: TransferEvent) {
        let events = state.withLock { state -> [TransferEvent] in
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
            case (.undecided(let held), _):
                state = .undecided(held + [event])
                return []
            }
        }
        for event in events { next.receive(event) }
    }
}
