// SPDX-License-Identifier: MIT

package import ANHTTP
import CCurl
import COpenSSL

/// A reader of the frames that a server sends on an HTTP/2 connection over TLS, one TLS record ahead of libcurl.
///
/// libcurl does not report some facts about a stream: whether the server ended it (7.88 to 8.21 treat a reset without
/// an error as the end of a response, and 7.88 also a connection that nghttp2 terminated), whether GOAWAY or a reset
/// states that the request was not processed, and the end of a response while the request's body is open. Some
/// responses are lost entirely, see ``HTTP2Answers``.
///
/// Each record is decrypted and inspected with SSL_peek(3), after which libcurl reads the same record with SSL_read(3).
/// To keep libcurl from reading a record that was not inspected, the session's source of encrypted bytes is a BIO that
/// is always empty, replaced by the socket only while this object reads. See SSL_set0_rbio(3).
@safe final class HTTP2Monitor {
    /// The connection's socket.
    let socket: Int32
    private let session: OpaquePointer
    private let source: OpaquePointer
    /// A BIO that is always empty.
    private let emptySource: OpaquePointer
    private var scanner = HTTP2FrameScanner()
    private var streams = HTTP2StreamTable()
    /// The transfers by stream identifier.
    private var transfers: [UInt32: Transfer] = [:]
    /// The latest stream, and the number of bytes of requests that its transfer had sent before it.
    private var latest: (stream: HTTP2Stream, bytesBefore: Int)?
    /// The streams that the server ended or reset since the last call to ``takeEnded()``.
    private var ended: [UInt32] = []
    /// Whether settings were received since the last call to ``takeSettings()``.
    private var hasSettings = false
    /// The responses that libcurl may lose; `nil` if it loses none.
    private var answers: HTTP2Answers?
    /// Whether the connection has ended or failed.
    private(set) var isOver = false

    /// The result of looking for the next record.
    enum Progress {
        /// Bytes are available for libcurl to read.
        case unread
        /// No further record has been received.
        case nothing
        /// The connection has ended, and libcurl will detect its end.
        case ended
    }

    /// Starts reading ahead on an established connection; `nil` if memory is exhausted.
    ///
    /// - Parameter keepsAnswers: Whether libcurl may lose responses.
    init?(_ session: OpaquePointer, socket: Int32, keepsAnswers: Bool) {
        guard let source = unsafe BIO_new_socket(socket, BIO_NOCLOSE) else { return nil }
        guard let empty = unsafe BIO_new(BIO_s_mem()) else {
            unsafe BIO_free(source)
            return nil
        }
        // Makes the empty BIO report that bytes may come later, instead of the end. See BIO_s_mem(3).
        unsafe BIO_ctrl(empty, BIO_C_SET_BUF_MEM_EOF_RETURN, -1, nil)
        // Called when libcurl looks for bytes. See BIO_set_callback_ex(3).
        unsafe BIO_set_callback_arg(empty, UnsafeMutablePointer<CChar>(session))
        unsafe BIO_set_callback_ex(empty) { source, operation, _, _, _, _, result, _ in
            if operation == BIO_CB_READ, let session = unsafe BIO_get_callback_arg(source) {
                unsafe Handshake.of(OpaquePointer(session))?.storeTickets(of: OpaquePointer(session))
            }
            return Int(result)
        }
        self.socket = socket
        answers = keepsAnswers ? HTTP2Answers() : nil
        unsafe self.session = unsafe session
        unsafe self.source = unsafe source
        unsafe emptySource = unsafe empty
        // libcurl 8.15 and later make OpenSSL read several records from the socket at once.
        unsafe SSL_set_read_ahead(session, 0)
        unsafe use(emptySource)
    }

    deinit {
        unsafe BIO_free(source)
        unsafe BIO_free(emptySource)
    }

    /// The number of records that were inspected.
    private(set) var recordCount = 0
    /// The number of records up to which the next one is inspected whenever libcurl has processed a transfer.
    var recordLimit = 0

    /// The number of inspected bytes that libcurl has not yet read.
    var unreadCount: Int32 { unsafe SSL_pending(session) }

    /// How far libcurl has read: the number of inspected records, and of bytes that it has not read.
    var position: (records: Int, unread: Int32) { (recordCount, unreadCount) }

    /// Whether libcurl has read bytes since then.
    func hasRead(since position: (records: Int, unread: Int32)) -> Bool {
        recordCount > position.records || unreadCount < position.unread
    }

    /// Whether the connection should carry no further requests. It is closed once no request waits on it.
    private(set) var isSpent = false

    /// Whether the connection accepts no new streams.
    var isClosing: Bool { streams.isClosing || isBroken || isOver || isSpent }

    /// The number of streams that the server allows at the same time; `nil` before its settings are received.
    var maximumStreams: Int? { streams.maximumStreams.map(Int.init) }

    /// Returns whether the server has sent settings since the last call.
    func takeSettings() -> Bool {
        defer { hasSettings = false }
        return hasSettings
    }

    /// Whether the server violated the protocol, so that no stream can continue.
    var isBroken: Bool { streams.isBroken || answers?.isInvalid == true }

    /// The transfers whose requests are waiting on streams.
    var waiting: [Transfer] { Array(transfers.values) }

    /// Adds the stream of a request that is about to be sent.
    func open(for transfer: Transfer) -> HTTP2Stream {
        withdrawUnsent()
        let stream = streams.open()
        latest = (stream, transfer.handle.long(CURLINFO_REQUEST_SIZE))
        transfers[stream.number] = transfer
        if transfer.exchange.sendsBody { answers?.open(stream.number) }
        return stream
    }

    /// Withdraws the latest stream if libcurl did not send its request. libcurl sends a request right after the callback
    /// in which the stream is opened here, or ends the transfer with an error. Version 8.7 does not count what it sends.
    private func withdrawUnsent() {
        guard let (stream, bytesBefore) = latest, let transfer = transfers[stream.number], !transfer.isExclusive,
            transfer.handle.long(CURLINFO_REQUEST_SIZE) == bytesBefore
        else { return }
        streams.withdraw(stream)
        transfers[stream.number] = nil
        answers?.close(stream.number)
        latest = nil
    }

    /// Removes the stream of a finished request.
    func close(_ stream: HTTP2Stream) {
        if latest?.stream === stream { withdrawUnsent() }
        guard streams[stream.number] === stream else { return }
        // HAProxy 2.6 does not return flow-control credit for the body bytes that it discards: the connection's window
        // is not restored (RFC 9113 §6.9), and another body may never be sent.
        if stream.isReset, transfers[stream.number]?.exchange.sendsBody == true { isSpent = true }
        streams.close(stream)
        transfers[stream.number] = nil
        answers?.close(stream.number)
    }

    /// Returns the response on a stream whose request has a body, as far as libcurl has not handed it on; `nil` if it is
    /// not kept.
    func answer(on stream: HTTP2Stream) -> HTTP2Answers.Answer? {
        answers?[stream.number]
    }

    /// Returns the transfers whose streams the server ended or reset since the last call.
    func takeEnded() -> [Transfer] {
        guard !ended.isEmpty else { return [] }
        defer { ended.removeAll(keepingCapacity: true) }
        return ended.compactMap { transfers[$0] }
    }

    /// Inspects the next record, unless libcurl has not finished reading the previous one.
    ///
    /// - Parameter buffer: Space for a record, 16 KiB.
    func readAhead(into buffer: UnsafeMutableRawBufferPointer) -> Progress {
        guard !isOver else { return .ended }
        guard unreadCount == 0 else { return .unread }
        let (count, isOver) = unsafe peek(into: buffer)
        guard count > 0 else {
            guard isOver else { return .nothing }
            self.isOver = true
            // libcurl 7.88 may interpret the failure as bytes that come later.
            unsafe SSL_set_shutdown(session, SSL_get_shutdown(session) | SSL_RECEIVED_SHUTDOWN)
            return .ended
        }
        recordCount += 1
        answers?.beginRecord { number in
            guard let stream = streams[number], let transfer = transfers[number] else { return 0 }
            return stream.bodySize - transfer.state.receiving.count
        }
        let bytes = unsafe UnsafeRawBufferPointer(buffer)[..<count]
        unsafe bytes.withMemoryRebound(to: UInt8.self) { bytes in
            unsafe scanner.receive(bytes.span, receive) { answers?.receive($0, $1, $2) }
        }
        return .unread
    }

    private func receive(_ event: HTTP2FrameScanner.Event) {
        streams.receive(event)
        switch event {
        case .settings: hasSettings = true
        case .data(let stream, _, endsStream: true), .reset(let stream, _):
            ended.append(stream)
        case .headersEnd(let stream):
            answers?.endHeaders(stream)
            if streams[stream]?.isEnded == true { ended.append(stream) }
        default: break
        }
    }

    /// The number of records without data, such as session tickets, that are read at a time.
    private static let maximumEmptyRecords = 16

    /// Returns the number of decrypted bytes; or 0, and whether no more will be received.
    private func peek(into buffer: UnsafeMutableRawBufferPointer) -> (Int, isOver: Bool) {
        // OpenSSL may answer a key update or send an alert, which libcurl's own sink accepts only during a call to
        // libcurl.
        guard let sink = unsafe SSL_get_wbio(session) else { return (0, true) }
        unsafe BIO_up_ref(sink)
        unsafe use(source)
        unsafe BIO_up_ref(source)
        unsafe SSL_set0_wbio(session, source)
        defer {
            unsafe SSL_set0_wbio(session, sink)
            unsafe use(emptySource)
        }
        // SSL_get_error(3) would attribute an older error to this call. libcurl clears the error queue, too.
        ERR_clear_error()
        defer { ERR_clear_error() }
        let handshake = unsafe Handshake.of(session)
        handshake?.isReadAhead = true
        var result: Int32
        var isEmpty: Bool
        var recordsLeft = Self.maximumEmptyRecords
        repeat {
            let received = unsafe BIO_number_read(source)
            result = unsafe SSL_peek(session, buffer.baseAddress, Int32(buffer.count))
            isEmpty = unsafe BIO_number_read(source) == received
            recordsLeft -= 1
        } while unsafe result <= 0 && !isEmpty && recordsLeft > 0
            && SSL_get_error(session, result) == SSL_ERROR_WANT_READ
        handshake?.isReadAhead = false
        guard result <= 0 else { return (Int(result), false) }
        switch unsafe SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return (0, false)
        default: return (0, true)
        }
    }

    /// Sets the BIO from which OpenSSL reads encrypted bytes. OpenSSL retains it.
    private func use(_ source: OpaquePointer) {
        unsafe BIO_up_ref(source)
        unsafe SSL_set0_rbio(session, source)
    }
}

/// How much libcurl's HTTP/2 is trusted with.
///
/// | libcurl | ``ANHTTP/HTTPVersionPolicy/automatic`` | ``ANHTTP/HTTPVersionPolicy/http2`` | ``ANHTTP/HTTPVersionPolicy/http2PriorKnowledge`` |
/// |---|---|---|---|
/// | without HTTP/2 | HTTP/1.1 | HTTP/1.1 | an error |
/// | before 8.10.1 | HTTP/1.1 | one exchange at a time on a connection | a connection for each exchange |
/// | 8.10.1 and later | HTTP/2, shared connections | HTTP/2, shared connections | shared connections |
///
/// Exchanges that share a connection of an older version lose requests, and bytes of one stream end up in another:
///
/// | defect | fixed in |
/// |---|---|
/// | with prior knowledge, the preface is sent with each request | 8.0 (cbe9d82c22) |
/// | while the socket is full, `SSL_write` is repeated with other bytes, which ends the connection; bytes of one stream overwrite another's in the buffer that both use | 8.1 (744dcf22fa, 8f50e393ab) |
/// | an easy handle that is removed while nghttp2 holds its HEADERS back, because the socket is full, is accessed after it is freed | 8.7 (with 8.5 still reproduced) |
/// | request bodies of unknown length are cut, doubled or contain a raw frame header | 8.7 (the reader of request bodies was rewritten) |
/// | the end of a request body of unknown length is not sent | 8.10.1 (35bf766280, 70d3a9b6aa) |
///
/// All of them need a second stream on the connection, or a connection that outlives an unfinished exchange.
package enum HTTP2Sharing: Sendable {
    /// libcurl was built without HTTP/2.
    case unsupported
    /// A connection carries one exchange at a time, and is closed unless the exchange was completed.
    case exclusive
    /// Exchanges share connections.
    case multiplexed

    /// Returns the sharing for a version of libcurl, as in `curl_version_info_data.version_num`.
    package init(version: UInt32, hasHTTP2: Bool) {
        self = !hasHTTP2 ? .unsupported : version < 0x08_0A_01 ? .exclusive : .multiplexed
    }

    /// The maximum size in bytes of a request's head over HTTP/2. nghttp2 sends no more than 64 KiB, to which libcurl adds
    /// fields of its own and up to 8 KiB of cookies.
    package static let maximumHeadSize = 48 << 10

    /// The value of CURLOPT_HTTP_VERSION(3) for a policy.
    ///
    /// - Parameter headSize: The size of the request's head in bytes. One that is too large for HTTP/2 is sent over
    ///   HTTP/1.1.
    /// - Throws: ``ANHTTP/TransportError/Reason/unsupported(_:)``, or
    ///   ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` for a head that is too large for the only permitted version.
    package func curlNumber(
        of policy: HTTPVersionPolicy, isSecure: Bool, headSize: Int
    ) throws(TransportError) -> Int {
        let mayNegotiate = isSecure && headSize <= Self.maximumHeadSize
        return switch policy {
        // Without TLS, libcurl would reuse a connection of a request that speaks HTTP/2 by prior knowledge.
        case .automatic: mayNegotiate && self == .multiplexed ? CCURL_HTTP_VERSION_2TLS : CCURL_HTTP_VERSION_1_1
        case .http2: mayNegotiate && self != .unsupported ? CCURL_HTTP_VERSION_2TLS : CCURL_HTTP_VERSION_1_1
        case .http1: CCURL_HTTP_VERSION_1_1
        case .http2PriorKnowledge where self == .unsupported: throw TransportError(.unsupported(.http2))
        case .http2PriorKnowledge where headSize > Self.maximumHeadSize:
            throw TransportError(.invalidRequest(.option("A head of more than 48 KiB cannot be sent over HTTP/2.")))
        case .http2PriorKnowledge: CCURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
        case .http3: CCURL_HTTP_VERSION_3
        case .http3Only: CCURL_HTTP_VERSION_3ONLY
        }
    }
}
