// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import HTTPTypes

// Where libcurl answers challenges, an exchange has several legs, each with a request and a response. Whether a response is
// a challenge that libcurl will answer cannot be asked for, but it shows: the body of such a response is not handed on, and
// the next thing that happens is another leg. So the head of each 401 and 407 is held back until one or the other.

extension Transfer {
    /// Whether a head may be that of a challenge that libcurl answers.
    func mayBeAnswered(_ head: ResponseHead) -> Bool {
        exchange.answersChallenges == true && (head.status.code == 401 || head.status.code == 407)
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
