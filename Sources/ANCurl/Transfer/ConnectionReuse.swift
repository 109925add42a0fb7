// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import HTTPTypes

/// Whether a connection may carry another request after the current one.
///
/// | connection | after | another request |
/// |---|---|---|
/// | the exchange's own, or one that cannot be found again | anything | no |
/// | any | a response to a request without its body, which was to obtain a challenge: libcurl 7.88 notes on the connection that there is none | no |
/// | HTTP/2, one exchange at a time | the request was sent and its response began | yes |
/// | | anything else: nghttp2 may hold frames that point to the request's handle | no |
/// | HTTP/2 and HTTP/3, shared | anything | yes |
/// | HTTP/1.1 | a response to a request whose body was not sent completely: the server may take the next request for the rest of the body | no |
/// | | an error in response to a body of 64 KiB or more: the server may close the connection without reading it, as gunicorn does | no |
/// | | bytes after a response without a body | no |
/// | | anything else | yes, unless libcurl finds it unusable |
package struct ConnectionReuse {
    /// The kind of the connection.
    package enum Kind: Hashable, Sendable {
        /// A connection that carries one exchange only, or whose state cannot be checked before it is used again.
        case own
        /// HTTP/1.1.
        case http1
        /// HTTP/2 with one exchange at a time; see ``HTTP2Sharing``.
        case exclusive
        /// HTTP/2 or HTTP/3 with several exchanges at the same time.
        case shared
    }

    /// The progress of the exchange.
    package enum Progress: Hashable, Sendable {
        /// The request is about to be sent, as the first or the next one of its exchange.
        case begun
        /// The head of a final response, perhaps a challenge, was received after this much of the request.
        case answered(status: Int, Sent)
        /// The exchange has failed or was cancelled.
        case failed
    }

    /// How much of a request was sent when its response began.
    package enum Sent: Hashable, Sendable {
        /// All of it, with a body of less than 64 KiB or none.
        case whole
        /// All of it, with a larger body, which the server may not have read.
        case wholeLarge
        /// A part of its body.
        case part
        /// A request without its body, to obtain a challenge.
        case probe
    }

    /// The smallest body that counts as large, in bytes.
    package static let largeBody = 64 << 10

    /// Returns whether a connection may be used again.
    package static func isAllowed(on kind: Kind, after progress: Progress) -> Bool {
        switch (kind, progress) {
        case (.own, _), (_, .answered(_, .probe)): false
        case (.shared, _): true
        case (.exclusive, .begun), (.exclusive, .failed), (.exclusive, .answered(_, .part)): false
        case (.exclusive, .answered): true
        case (.http1, .begun), (.http1, .failed), (.http1, .answered(_, .whole)): true
        case (.http1, .answered(let status, .wholeLarge)): status < 400
        case (.http1, .answered(_, .part)): false
        }
    }
}

extension Transfer {
    /// Tells libcurl whether it may keep the connection. See CURLOPT_FORBID_REUSE(3).
    func reviewReuse(after progress: ConnectionReuse.Progress) {
        let isForbidden = !ConnectionReuse.isAllowed(on: connectionKind, after: progress)
        if state.connection.forbidReuse(isForbidden) { try? handle.set(CURLOPT_FORBID_REUSE, isForbidden) }
    }

    /// Looks for bytes that follow the last chunk of a response, or the head of one without a body, in the same read, of which
    /// libcurl tells only in a text. See ``CurlDefects/ignoredExcess`` and CURLOPT_DEBUGFUNCTION(3).
    func watchExcess() {
        let framing = state.parser.framing
        let hasNoBody = framing.hasNoBody || framing.contentLength == 0 || exchange.request.method == .head
        guard !framing.isMultiplexed,
            hasNoBody ? loop.context.defects.contains(.ignoredExcess) : framing.isChunked
        else { return }
        unsafe try? handle.set(CURLOPT_DEBUGDATA, pointer: Unmanaged.passUnretained(self).toOpaque())
        unsafe _ = ccurl_set_debug_callback(handle.raw) { _, kind, bytes, size, context in
            let text = unsafe UnsafeRawBufferPointer(start: bytes, count: size)
            let beginnings = ["Excess found", "Leftovers after chunking"]
            if kind == CURLINFO_TEXT, beginnings.contains(where: { unsafe text.starts(with: $0.utf8) }) {
                let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                if transfer.state.connection.forbidReuse(true) {
                    try? transfer.handle.set(CURLOPT_FORBID_REUSE, true)
                }
            }
            return 0
        }
        try? handle.set(CURLOPT_VERBOSE, true)
    }

    private var connectionKind: ConnectionReuse.Kind {
        // That of a WebSocket must outlive libcurl's transfer, and serves no other.
        guard exchange.webSocket == nil else { return .http1 }
        // The endpoints of Unix-domain sockets are the same for all connections to a path. A connection could not be
        // found in the table, and its waiting bytes not be noticed, before it is used again.
        if exchange.needsOwnConnection || exchange.options.connection.unixSocketPath != nil && !state.connection.isHTTP2
        {
            return .own
        }
        if isExclusive { return .exclusive }
        return state.connection.isHTTP2 || state.connection.isHTTP3 ? .shared : .http1
    }

    /// How much of the request was sent.
    var sentPart: ConnectionReuse.Sent {
        if !state.repeating.probes.isEmpty { return .probe }
        if hasUnsentBody { return .part }
        let isLarge = exchange.sendsBody && state.sending.count >= ConnectionReuse.largeBody
        return isLarge ? .wholeLarge : .whole
    }
}
