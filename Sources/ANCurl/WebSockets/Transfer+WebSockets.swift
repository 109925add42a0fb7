// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl

extension Transfer {
    /// Returns the error for a failure to send or receive on a connection that libcurl has made.
    func webSocketError(_ failure: ConnectionStream.Failure) -> TransportError {
        switch failure {
        case .libcurl(let code):
            return transportError(code == CURLE_SEND_ERROR && state.parser.isComplete ? CURLE_RECV_ERROR : code)
        case .system(let errno):
            var context = context()
            context.errno = errno
            return TransportError(earlyEnd, context: context)
        }
    }

    /// Returns the bytes of an established connection without libcurl; `nil` if only libcurl can send and receive them:
    /// with TLS to a proxy, the session's source is that proxy's session.
    var independentStream: ConnectionStream? {
        guard !mayUseTLSProxy, let connection else { return nil }
        guard exchange.isSecure else { return ConnectionStream(socket: connection.socket) }
        guard CurlLibrary.usesOpenSSL, let session = unsafe ccurl_tls_session(handle.raw) else { return nil }
        return unsafe ConnectionStream(OpaquePointer(session), socket: connection.socket)
    }
}
