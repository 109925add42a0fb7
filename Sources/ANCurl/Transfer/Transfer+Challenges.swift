// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import HTTPTypes

// If libcurl responds to challenges, an exchange has several legs, each with a request and a response. libcurl does not
// report whether it will respond to a challenge, but it can be inferred: the body of such a response is not delivered,
// and the next event is another leg. Therefore the head of each 401 and 407 is held until either is known.
//
// If the request has a body, each leg is a probe without it until libcurl knows the challenges of the server and the
// proxy, as far as it has credentials for them; see ``Probes``. A party that requires no credential answers a probe as if
// the request had no body, and that is not the response to the request:
//
// | answer to a probe | next step |
// |---|---|
// | 401, 407 | libcurl sends the request with credentials, as another probe or with the body, or this is the response |
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
        if head.status.code == 417, exchange.expectsContinue, !state.omitsExpectation { return .refusal(.expectation) }
        let isAnonymous = !state.omitted.isEmpty && state.omitted == exchange.probes
        guard exchange.answersChallenges, exchange.webSocket == nil, !isAnonymous else { return .response }
        switch head.status.code {
        case 401 where isStale(head.headers[values: .wwwAuthenticate], for: .server):
            return .refusal(.credentials(.server))
        case 407 where isStale(head.headers[values: .proxyAuthenticate], for: .proxy):
            return .refusal(.credentials(.proxy))
        case 401, 407: return .undecided
        default: return state.probes.isEmpty ? .response : .refusal(.credentials(state.probes))
        }
    }

    /// Whether a party to which libcurl has just answered a challenge calls the answer stale (RFC 7616 §3.3). libcurl would
    /// answer again as often as redirects are permitted, and discard the body of the last response.
    private func isStale(_ challenges: [String], for party: Probes) -> Bool {
        guard state.sending.count == 0 || exchange.upload.isReplayable else { return false }
        return state.answered.contains(party)
            && challenges.contains { $0.lowercased().contains(/\bstale\s*=\s*"?true/) }
    }

    /// Delivers the held head as that of the response.
    func deliverHeldHead() {
        if let head = state.receiving.takeHeld() { deliver(head) }
    }

    /// Starts the next leg, in which libcurl sends the request again with the answer to a challenge.
    func beginNextLeg() -> Bool {
        state.beginNextLeg(exchange, on: loop)
        return rewind()
    }
}
