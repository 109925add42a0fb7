// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import HTTPTypes

// If libcurl responds to challenges, an exchange has several legs, each with a request and a response. libcurl does not
// report whether it will respond to a challenge, but it can be inferred: the body of such a response is not delivered,
// and the next event is another leg. Therefore the head of each 401 and 407 is held until either is known.
//
// If the request has a body, the first leg is a probe without it. If the server requires no credential, its answer to
// the probe is not the response to the request:
//
// | answer to a probe | next step |
// |---|---|
// | 401, 407 | libcurl sends the request with credentials, or this is the response |
// | below 300, from a probed server | libcurl sends the request without credentials |
// | any other | the transfer is abandoned, and another one sends the request without credentials |

extension Transfer {
    /// The use of a final head.
    enum HeadUse {
        /// The head is delivered to the reader.
        case response
        /// The head is held until it is known whether libcurl sends the request again.
        case undecided
        /// The head answers a probe, and libcurl would treat it as the response.
        case refusedProbe
    }

    func use(of head: ResponseHead) -> HeadUse {
        guard exchange.answersChallenges, exchange.webSocket == nil, !state.sendsNoCredential else { return .response }
        switch head.status.code {
        case 401, 407: return .undecided
        case ..<300 where !exchange.probesProxy: return state.isProbing ? .undecided : .response
        default: return state.isProbing ? .refusedProbe : .response
        }
    }

    /// Delivers the held head as that of the response.
    func deliverHeldHead() {
        guard let head = state.heldHead else { return }
        state.heldHead = nil
        deliver(head)
    }

    /// Starts the next leg, in which libcurl sends the request again with the answer to a challenge.
    func beginNextLeg() -> Bool {
        state.beginNextLeg(exchange, on: loop)
        return rewind()
    }
}
