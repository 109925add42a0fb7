// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl

extension CurlEngine {
    /// Hands on the end of a response whose request's body is still open. The reader of a streamed response receives it at
    /// once, and the rest of the request is sent until its scope ends. A collected response waits for the rest of a body
    /// that has an end, as long as the server takes it.
    func endResponse(of transfer: Transfer) {
        if transfer.endsWithResponse { return endEarly(transfer) }
        guard transfer.exchange.delivery == .streamed, !transfer.state.isResponseHandedOn else { return }
        guard transfer.isResponseWhole, case .success(let ending) = transfer.outcome(CURLE_OK) else {
            return endEarly(transfer)
        }
        transfer.state.isResponseHandedOn = true
        transfer.exchange.endResponse(ending)
    }

    /// Ends a transfer whose response is complete while its request's body is not.
    func endEarly(_ transfer: Transfer) {
        guard !transfer.isResponseWhole else { return finish(transfer, transfer.outcome(CURLE_OK)) }
        transfer.state.isBodyEnded = true
        transfer.state.isSendingPaused = false
        transfer.state.clock.noteActivity(at: state.now)
        transfer.handle.resume(receiving: !transfer.state.isReceivingPaused, sending: true)
    }
}
