// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import HTTPTypes

// Where libcurl answers challenges, an exchange has several legs, each with a request and a response. Whether a response is
// a challenge that libcurl will answer cannot be asked for, but it shows: the body of such a response is not handed on, and
// the next thing that happens is another leg. So the head of each 401 and 407 is held back until one or the other.
//
// Where the request has a body, the first leg is a probe without it. What a server answers that asks for no credential is
// not the response to the request:
//
// | the answer to a probe | what follows |
// |---|---|
// | 401, 407 | libcurl sends the request with credentials, or this is the response |
// | below 300, of a server that was probed | libcurl sends the request without credentials |
// | another one | the transfer is given up, and the request is sent without credentials by another one |

extension Transfer {
    /// What becomes of a final head.
    enum HeadUse {
        /// It is delivered.
        case response
        /// It is kept until it shows whether libcurl sends the request again.
        case undecided
        /// It answers a probe, and libcurl would take it for the response.
        case refusedProbe
    }

    func use(of head: ResponseHead) -> HeadUse {
        guard exchange.answersChallenges, !state.sendsNoCredential else { return .response }
        switch head.status.code {
        case 401, 407: return .undecided
        case ..<300 where !exchange.probesProxy: return state.isProbing ? .undecided : .response
        default: return state.isProbing ? .refusedProbe : .response
        }
    }

    /// The head that was held back is the result's.
    func deliverHeldHead() {
        guard let head = state.heldHead else { return }
        state.heldHead = nil
        deliver(head)
    }

    /// libcurl has answered a challenge and is about to send the request again.
    func beginNextLeg() -> Bool {
        state.beginNextLeg(exchange, on: loop)
        return rewind()
    }
}
