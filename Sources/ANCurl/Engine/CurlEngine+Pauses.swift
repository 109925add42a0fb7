// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl

// The ends of pauses, for which the reader of a response or the source of a request's body asks by a message.

extension CurlEngine {
    /// Resumes receiving after the reader has made room.
    func resumeReceiving(_ exchange: Exchange) {
        guard let transfer = active[ObjectIdentifier(exchange)], transfer.state.isReceivingPaused else { return }
        transfer.state.isReceivingPaused = false
        resume(transfer)
    }

    /// Resumes sending after the body's source has bytes, or ends the transfer if the source failed.
    func resumeSending(_ exchange: Exchange) {
        guard let transfer = active[ObjectIdentifier(exchange)] else { return }
        if let error = transfer.uploadError { return finish(transfer, .failure(error)) }
        guard transfer.state.isSendingPaused else { return }
        transfer.state.isSendingPaused = false
        resume(transfer)
    }

    /// Resumes a paused transfer. Bytes that libcurl buffered during the pause are delivered within the call, and
    /// errors in processing them are reported only by its result. See curl_easy_pause(3).
    private func resume(_ transfer: Transfer) {
        transfer.state.clock.noteActivity(at: state.now)
        let code = transfer.handle.resume(
            receiving: !transfer.state.isReceivingPaused, sending: !transfer.state.isSendingPaused)
        if transfer.state.failure != nil { return finish(transfer, transfer.outcome(code)) }
        transfer.noteReadingEnded()
    }
}
