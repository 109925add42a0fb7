// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl

// The use of an alternative service, and the return to the origin's own connection if it fails.
//
// libcurl's cache of alternative services belongs to an easy handle, and would have it use QUIC only. With
// CURL_HTTP_VERSION_3 libcurl attempts QUIC and TCP at the same time, but prefers an open TCP connection, which the
// exchange that learned of the alternative has left behind: therefore the first exchange makes a new connection, and
// those after it allow HTTP/3 only.

extension Transfer {
    /// Notes the version that the connection speaks, and that an attempt at an alternative service is over.
    func noteVersion() {
        let version = negotiatedVersion
        state.isOnHTTP2 = version == .http2
        state.isOnHTTP3 = version == .http3
        guard !state.isOnHTTP3, isRacing || exchange.version == .http3 else { return }
        // The server may have been refused over QUIC.
        state.refusal = nil
        state.alternative?.report(false)
    }

    /// Notes that the alternative service has answered.
    func noteAlternativeAnswered() {
        if let route = state.alternative, state.isOnHTTP3 { route.report(true) }
    }

    /// Whether libcurl's error is a failure of the alternative service: no byte of a response was received from it, and
    /// the origin's own connection would not have failed in the same way.
    func isAlternativeFailed(_ code: CURLcode) -> Bool {
        guard state.alternative != nil, state.failure == nil, uploadError == nil, !state.parser.hasBegun else {
            return false
        }
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_OPERATION_TIMEDOUT, CURLE_ABORTED_BY_CALLBACK, CURLE_OUT_OF_MEMORY,
            CURLE_INTERFACE_FAILED:
            return false
        default:
            // After a race both ways have failed.
            return state.attempts > 0 ? state.isOnHTTP3 : !isRacing
        }
    }

    /// Whether the request must be sent again without its alternative service, which has failed. Only requests that may
    /// be repeated have one.
    func mustLeaveAlternative(after code: CURLcode) -> Bool {
        isAlternativeFailed(code) && state.attempts <= 1
    }

    /// Whether the exchange attempts QUIC and TCP at the same time.
    var isRacing: Bool { state.alternative.map(exchange.isRacing) ?? false }

    /// The time limit for connecting to an alternative service, after which the request is sent without it: 2 s, or a
    /// quarter of the connection or total limit. `nil` if no such connection is being made.
    var alternativeLimit: TransferClock.Limit? {
        guard state.alternative != nil, !isRacing, let start = state.clock.leftQueue, state.clock.connected == nil
        else {
            return nil
        }
        let timeouts = exchange.options.timeouts
        let least = [timeouts.connect, timeouts.total].compactMap(\.self).min().map { $0 / 4 }
        return TransferClock.Limit(kind: .connect, duration: min(least ?? .seconds(2), .seconds(2)), since: start)
    }

    /// Reports that the alternative service failed, if no byte of a response was received from it.
    func reportFailedAlternative() {
        guard let route = state.alternative, !state.parser.hasBegun, state.isOnHTTP3 || !isRacing else { return }
        route.report(false)
    }

    /// Reports that the alternative service failed if libcurl's error says so. A server may close a connection that was
    /// idle when the request was sent, which is no failure.
    func reportFailedAlternative(after code: CURLcode) {
        guard isAlternativeFailed(code), state.attempts == 0 || handle.long(CURLINFO_NUM_CONNECTS) > 0 else { return }
        reportFailedAlternative()
    }
}

extension EasyHandle {
    /// Sets the version of HTTP for an exchange with an alternative service.
    func apply(_ route: AlternativeRoute, isRacing: Bool) throws(CurlFailure) {
        guard isRacing else { return try set(CURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_3ONLY) }
        try set(CURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_3)
        try set(CURLOPT_FRESH_CONNECT, true)
    }
}
