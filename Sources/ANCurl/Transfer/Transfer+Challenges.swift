// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import HTTPTypes

// ``DigestAnswer`` responds to the challenges of servers by Digest, and libcurl to all others except Basic.
//
// If libcurl responds to challenges, an exchange has several legs, each with a request and a response. libcurl does not
// report whether it will respond to a challenge, but it can be inferred: the body of such a response is not delivered,
// and the next event is another leg. Therefore the head of each 401 and 407 is held until either is known.
//
// If the request has a body, each leg is a probe without it until libcurl knows the challenges of the server and the
// proxy, as far as it has credentials for them, or needs none; see ``Probes``. A party that requires no credential answers a probe as if
// the request had no body, and that is not the response to the request:
//
// | answer to a probe | next step |
// |---|---|
// | 401, 407 | libcurl sends the request with credentials, as another probe or with the body, or this is the response |
// | 429, 503 | this is the response, of a party that is overloaded |
// | any other | the transfer is abandoned, and another one sends the request without the credentials in question |
//
// After a success, libcurl would send the body itself, but without a credential that the proxy requires, and not at all
// if it had credentials for both.

/// The parties whose challenges libcurl obtains by requests without the body.
package struct Probes: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let server = Probes(rawValue: 1)
    package static let proxy = Probes(rawValue: 2)
}

/// A part of a request that a server refused by a response that is not the exchange's, so that the request is sent again
/// without it.
package enum RefusedPart: Equatable, Sendable {
    /// Credentials: a request without the body was answered by a response that is no challenge, or a fresh answer to a
    /// challenge counts as stale.
    case credentials(Probes)
    /// The expectation of a 100 (RFC 9110 §10.1.1).
    case expectation
}

/// How often a request was sent, and what is left out when it is sent again.
package struct TransferRepeating {
    /// The number of times that a connection was ready for the request in this leg.
    package private(set) var attempts = 0
    /// The number of times that the request was moved to another easy handle, whether or not it had been sent.
    package private(set) var repeats = 0
    /// The parties whose challenges are unknown. If there are any, the current leg is a request without its body, sent to
    /// obtain a challenge.
    package private(set) var probes: Probes
    /// The parties whose challenge libcurl has answered.
    package private(set) var answered: Probes = []
    /// The parties that are sent no credential.
    package private(set) var omitted: Probes = []
    /// Whether the request is sent without the expectation that a server refused.
    package private(set) var omitsExpectation = false

    /// The maximum number of times that a request is sent, and that it is moved to another easy handle, after which the
    /// failure is reported; a hostile server could otherwise cause endless repeats. A connection that is discarded
    /// before the request is sent counts as a repeat only.
    package static let maximumAttempts = 50
    package static let maximumRepeats = 100
    /// The number of idle connections that may turn out to be closed before a new one is made. There may be more of them
    /// than ``maximumRepeats``.
    package static let maximumIdleTries = 8

    /// Creates the state of a request that was not sent yet.
    package init(probes: Probes) { self.probes = probes }

    /// Whether the request, which is sent again, may try another idle connection.
    package var mayTryIdleConnection: Bool { repeats <= Self.maximumIdleTries }

    /// Whether the request may be moved to another easy handle.
    package var mayMove: Bool { repeats < Self.maximumRepeats }

    /// Returns whether the request may be moved to another easy handle although it was sent.
    package func mayMove(sendingAtMost limit: Int) -> Bool { attempts < limit && mayMove }

    /// Notes that a connection is ready for the request.
    package mutating func send() { attempts += 1 }

    /// Notes that libcurl sends the body: it can authenticate the request without a challenge, as on a connection that it
    /// has authenticated by NTLM, and the current leg is no probe.
    package mutating func sendBody() { probes = [] }

    /// Notes that libcurl sends the request on another connection, which may not be authenticated.
    ///
    /// - Parameter probes: The parties whose challenges the exchange obtains by requests without the body.
    package mutating func reconnect(probes: Probes) { self.probes = probes.subtracting(omitted).subtracting(answered) }

    /// Begins another leg after a challenge with a status, or after a response that refused a part of the request.
    package mutating func beginLeg(after challenge: Int?) {
        attempts = 0
        guard let challenge else { return }
        let party: Probes = challenge == 407 ? .proxy : .server
        probes.remove(party)
        answered.insert(party)
    }

    /// Moves the request to another easy handle, which knows no challenge.
    ///
    /// - Parameters:
    ///   - part: The part that the server refused; `nil` if it refused none.
    ///   - probes: The parties whose challenges the exchange obtains by requests without the body.
    package mutating func beginAgain(without part: RefusedPart?, probes: Probes) {
        switch part {
        case .credentials(let parties): omitted.formUnion(parties)
        case .expectation: omitsExpectation = true
        case nil: break
        }
        self.probes = probes.subtracting(omitted)
        answered = []
        repeats += 1
    }
}

extension Transfer {
    /// The use of a final head.
    enum HeadUse {
        /// The head is delivered to the reader.
        case response
        /// The head is held until it is known whether libcurl sends the request again.
        case undecided
        /// The head refuses a part of the request, and libcurl would treat it as the response.
        case refusal(RefusedPart)
    }

    func use(of head: ResponseHead) -> HeadUse {
        if head.status.code == 417, exchange.expectsContinue, !state.repeating.omitsExpectation {
            return .refusal(.expectation)
        }
        guard exchange.answersChallenges, exchange.webSocket == nil, !isAnonymous else { return .response }
        switch head.status.code {
        case 407 where isStale(head.headers[values: .proxyAuthenticate]):
            return .refusal(.credentials(.proxy))
        case 401, 407: return .undecided
        case 429, 503: return .response
        default: return state.repeating.probes.isEmpty ? .response : .refusal(.credentials(state.repeating.probes))
        }
    }

    /// Whether the request is sent again without any credential.
    private var isAnonymous: Bool {
        let omitted = state.repeating.omitted
        let hasServer = exchange.authentication?.server != nil
        let hasProxy = exchange.authentication?.proxy != nil || exchange.options.answersProxyChallenges
        return !omitted.isEmpty && (!hasServer || omitted.contains(.server)) && (!hasProxy || omitted.contains(.proxy))
    }

    /// Whether a proxy whose challenge libcurl has just answered calls the answer stale (RFC 7616 §3.3). libcurl would
    /// answer again as often as redirects are permitted, and discard the body of the last response.
    private func isStale(_ challenges: [String]) -> Bool {
        guard state.sending.count == 0 || exchange.upload.isReplayable else { return false }
        return state.repeating.answered.contains(.proxy)
            && challenges.contains { ChallengeParser.challenges(in: $0).contains(where: \.isStale) }
    }

    /// Delivers the held head as that of the response.
    func deliverHeldHead() {
        guard let head = state.receiving.takeHeld() else { return }
        stopSending(after: head, isHeld: false)
        deliver(head)
    }

    // MARK: Repeats

    /// Whether the request must be sent again with another easy handle.
    ///
    /// This is the case if its connection was discarded before anything was sent, if a server rejected a probe, or if a
    /// reused connection was lost before any byte of a response, provided that the request may be repeated. libcurl
    /// itself repeats a request only over HTTP/1.1, and only if it finds the connection lost when it reads.
    func mustRepeat(after code: CURLcode) -> Bool {
        // A response that was delivered, perhaps without the end of its body, is the only one.
        let isHeld = state.receiving.isHeld || state.receiving.refusedPart != nil
        // A refusal is no response. The stream is that of the challenge if the connection for the answer was discarded.
        let isAnswer = isStreamWhole && state.receiving.refusedPart == nil && !state.connection.isSpoilt
        guard !state.parser.isComplete || isHeld && !isAnswer else { return false }
        guard !state.connection.isSpoilt, state.receiving.refusedPart == nil else {
            return state.failure == nil && state.repeating.mayMove
        }
        if mayRepeatRejected { return true }
        let isLost = [CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE, CURLE_HTTP2, CURLE_HTTP3].contains(code)
        return isLost && state.failure == nil && state.repeating.attempts == 1 && !state.parser.hasBegun
            && handle.long(CURLINFO_NUM_CONNECTS) == 0 && exchange.mayBeRepeated && !state.sending.hasSentTrailers
    }

    /// Whether the request may be sent again: once if its method allows it, or as long as servers state that they have
    /// not processed it. It may not after its trailers were read, because libcurl before 8.7 corrupts memory when a
    /// handle sends them twice, nor after the head of its response, which libcurl disregards if the server requires HTTP/1.1
    /// (RFC 9113 §7). If not, the transfer fails.
    func mayRepeat() -> Bool {
        // Decided when the request left its connection.
        guard state.clock.connected != nil else { return true }
        // Its response is handed on when libcurl has given the request up.
        guard !hasLostAnswer else { return false }
        let isAnswered = state.parser.isComplete
        let isAllowed =
            mayRepeatUnprocessed
            || state.repeating.attempts < 2 && exchange.mayBeRepeated && !state.sending.hasSentTrailers
        guard isAllowed, !isAnswered else {
            let reason = isAnswered ? earlyEnd : .connectionLost(.beforeResponse)
            state.failure = state.failure ?? TransportError(reason, context: context(code: CURLE_GOT_NOTHING))
            return false
        }
        return true
    }
}
