// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import COpenSSL
import FoundationEssentials
import Glibc
import HTTPTypes

// libcurl's callbacks: each is a few lines that find the transfer and pass on what happened. They run on the loop's
// thread, within a call of libcurl's, so none of them adds or removes a transfer.

extension Transfer {
    func installCallbacks() throws(CurlFailure) {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        for option in [
            CURLOPT_PRIVATE, CURLOPT_HEADERDATA, CURLOPT_WRITEDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA,
            CURLOPT_OPENSOCKETDATA, CURLOPT_PREREQDATA, CURLOPT_RESOLVER_START_DATA, CURLOPT_TRAILERDATA,
        ] {
            unsafe try handle.set(option, pointer: context)
        }
        unsafe try handle.set(CURLOPT_ERRORBUFFER, pointer: message.start)
        // A connection outlives the transfer that made it, but not the loop.
        unsafe try handle.set(CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(loop).toOpaque())

        unsafe try check(
            ccurl_set_data_callback(handle.raw, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
                unsafe Transfer.at(context).receiveHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
            })
        unsafe try check(
            ccurl_set_data_callback(handle.raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
                unsafe Transfer.at(context).receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
            })
        unsafe try check(
            ccurl_set_data_callback(handle.raw, CURLOPT_READFUNCTION) { bytes, size, count, context in
                unsafe Transfer.at(context).sendBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
            })
        unsafe try check(
            ccurl_set_seek_callback(handle.raw) { context, offset, origin in
                unsafe Transfer.at(context).rewind(to: Int64(offset), from: origin)
            })
        unsafe try check(
            ccurl_set_resolver_callback(handle.raw) { _, _, context in
                unsafe Transfer.at(context).leaveQueue()
                return 0
            })
        unsafe try check(
            ccurl_set_open_callback(handle.raw) { context, _, address in
                unsafe Transfer.at(context).openSocket(address)
            })
        unsafe try check(
            ccurl_set_close_callback(handle.raw) { context, socket in
                if let context = unsafe context {
                    unsafe Unmanaged<LoopState>.fromOpaque(context).takeUnretainedValue().willClose(socket)
                }
                return close(socket)
            })
        unsafe try check(
            ccurl_set_prerequest_callback(handle.raw) { context, remote, local, remotePort, localPort in
                unsafe Transfer.at(context).didConnect(
                    remote: SocketAddress(remote, port: remotePort), local: SocketAddress(local, port: localPort))
            })
    }

    /// Installs the callback for trailers, or takes it away. See CURLOPT_TRAILERFUNCTION(3).
    func installTrailers(for exchange: Exchange) throws(CurlFailure) {
        guard exchange.request.trailers != nil else {
            return unsafe try check(ccurl_set_trailer_callback(handle.raw, nil))
        }
        unsafe try check(
            ccurl_set_trailer_callback(handle.raw) { list, context in
                guard let list = unsafe list else { return CURL_TRAILERFUNC_ABORT }
                return unsafe Transfer.at(context).sendTrailers(&list.pointee)
            })
    }

    private func check(_ code: CURLcode) throws(CurlFailure) {
        guard code == CURLE_OK else { throw CurlFailure(code: code) }
    }

    /// The transfer that a callback belongs to: libcurl hands back the pointer that was given with the callback.
    private static func at(_ context: UnsafeMutableRawPointer?) -> Transfer {
        unsafe Unmanaged<Transfer>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    }

    // MARK: Connecting

    private func leaveQueue() {
        state.clock.leaveQueue(at: loop.now)
        loop.noteChange(of: self)
    }

    private func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t {
        guard let address = unsafe address else { return CCURL_SOCKET_BAD }
        if state.clock.connected != nil {
            guard mayRepeat() else { return CCURL_SOCKET_BAD }
            state.clock.reconnect(at: loop.now)
        }
        leaveQueue()
        let kind = unsafe address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
        let socket = unsafe Glibc.socket(address.pointee.family, kind, address.pointee.protocol)
        guard socket >= 0 else { return CCURL_SOCKET_BAD }
        loop.didOpen(socket)
        state.socket = socket
        return socket
    }

    /// A connection is ready and the request is about to be sent, or sent again because the connection was lost before
    /// any byte of the response. libcurl would do that up to five times, whatever the method. See CURLOPT_PREREQFUNCTION(3).
    private func didConnect(remote: SocketAddress, local: SocketAddress) -> Int32 {
        if state.attempts > 0 {
            guard mayRepeat(), rewind() else { return CURL_PREREQFUNC_ABORT }
        }
        state.attempts += 1
        state.clock.connect(at: loop.now)
        loop.noteChange(of: self)
        state.metrics.remoteAddress = remote
        state.metrics.localAddress = local
        return CURL_PREREQFUNC_OK
    }

    /// Whether the request may be sent again: once, where its method allows it. If not, that is the failure.
    private func mayRepeat() -> Bool {
        guard state.attempts < 2, exchange?.mayBeRepeated == true else {
            state.failure =
                state.failure ?? TransportError.connectionLost(.beforeResponse, facts(code: CURLE_GOT_NOTHING))
            return false
        }
        return true
    }

    // MARK: Receiving

    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        guard let exchange else { return 0 }
        state.clock.noteActivity(at: loop.now)
        if !state.parser.hasBegun { noteTLS(exchange) }
        do throws(HeaderParser.Failure) {
            switch unsafe try state.parser.receive(line.assumingMemoryBound(to: UInt8.self)) {
            case .none: break
            case .informational(let head):
                exchange.events?.receive(.informational(head))
                // Another protocol would follow, which nobody asked for.
                guard head.status.code != 101 else { throw .invalid(.noFinalResponse) }
            case .final(let head):
                exchange.receive(head)
                loop.noteChange(of: self)
                // libcurl sends a body with any method but HEAD: here it takes the method for another one, and would
                // wait for a body that no response to HEAD has.
                guard exchange.request.method != .head || !exchange.sendsBody else { return 0 }
                prepareBuffer(exchange)
                if head.status.code >= 300 { stopSending() }
            }
            return line.count
        } catch {
            switch error {
            case .invalid(let problem): state.failure = TransportError.invalidResponse(problem, facts())
            case .tooLarge(let limit): state.failure = TransportError.responseTooLarge(.head(limit: limit), facts())
            }
            return 0
        }
    }

    /// The server has refused the request. libcurl then stops to send, but neither where sending is paused nor where the
    /// server is going to close the connection.
    private func stopSending() {
        state.isBodyRefused = true
        guard state.isSendingPaused else { return }
        state.isSendingPaused = false
        handle.resume(receiving: true, sending: true)
    }

    private func noteTLS(_ exchange: Exchange) {
        guard exchange.isSecure, let session = unsafe ccurl_tls_session(handle.raw) else { return }
        let tls = OpaquePointer(session)
        state.metrics.tlsVersion = unsafe SSL_get_version(tls).map { unsafe String(cString: $0) }
        state.metrics.cipher = unsafe SSL_CIPHER_get_name(SSL_get_current_cipher(tls)).map {
            unsafe String(cString: $0)
        }
    }

    private func prepareBuffer(_ exchange: Exchange) {
        guard case .collected(let limit) = exchange.delivery, let length = state.parser.contentLength,
            !state.parser.isContentEncoded, length > 0
        else { return }
        exchange.reserve(Int(min(length, Int64(min(limit, 1 << 20)))))
    }

    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let exchange else { return 0 }
        state.clock.noteActivity(at: loop.now)
        if let limit = exceededLimit(exchange, adding: bytes.count) {
            state.failure = TransportError.responseTooLarge(limit, facts())
            return 0
        }
        switch unsafe exchange.receive(bytes) {
        case .take:
            state.bytesReceived += bytes.count
            loop.noteChange(of: self)
            reportDownload(exchange)
            return bytes.count
        case .pause:
            state.isReceivingPaused = true
            return CCURL_WRITE_PAUSE
        case .refuse(let limit):
            state.failure = TransportError.responseTooLarge(.body(limit: limit), facts())
            return 0
        case .abandon:
            state.failure = CancellationError()
            return 0
        }
    }

    /// The bound on decompression that more bytes would pass; nil when they may come.
    ///
    /// libcurl counts what it received only after it handed on what that unpacked to, so one buffer is allowed for.
    private func exceededLimit(_ exchange: Exchange, adding count: Int) -> TransportError.SizeLimit? {
        guard state.parser.isContentEncoded, exchange.options.decodesContent else { return nil }
        let limit = exchange.options.decompressionLimit
        let decoded = state.bytesReceived.addingReportingOverflow(count).partialValue
        if let maximum = limit.maximumSize, decoded > maximum { return .decompressed(limit: maximum) }
        if let ratio = limit.maximumRatio, decoded > limit.ratioThreshold {
            let received = Int(handle.offset(CURLINFO_SIZE_DOWNLOAD_T)) + buffer.rawValue
            if decoded / max(1, ratio) > received { return .decompressionRatio(limit: ratio) }
        }
        return nil
    }

    private func reportDownload(_ exchange: Exchange) {
        guard let events = exchange.events, state.downloadPace.isDue(at: loop.now) else { return }
        events.receive(.downloadProgress(downloadProgress))
    }

    // MARK: Sending

    private func sendBody(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let exchange else { return CCURL_READ_ABORT }
        state.clock.noteActivity(at: loop.now)
        if state.isBodyRefused { return 0 }
        switch exchange.upload {
        case .none:
            return 0
        case .bytes(let data):
            let start = data.startIndex + state.bytesSent
            let count = min(buffer.count, data.endIndex - start)
            unsafe data.copyBytes(to: buffer, from: start..<(start + count))
            state.bytesSent += count
            reportUpload(exchange)
            return count
        case .channel(let channel):
            return unsafe sendBody(from: channel, exchange, buffer)
        }
    }

    private func sendBody(
        from channel: UploadChannel, _ exchange: Exchange, _ buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        let (supply, count) = unsafe channel.read(into: buffer)
        switch supply {
        case .bytes:
            state.bytesSent += count
            reportUpload(exchange)
            return count
        case .starving:
            state.isSendingPaused = true
            return CCURL_READ_PAUSE
        case .end:
            return 0
        case .failed:
            state.failure = uploadError
            return CCURL_READ_ABORT
        }
    }

    /// Why the source of the request's body failed; nil if it did not, or if the server did not want the body.
    var uploadError: TransportError? {
        guard !state.isBodyRefused, case .channel(let channel) = exchange?.upload, let problem = channel.problem
        else { return nil }
        return .requestBody(problem, facts())
    }

    private func sendTrailers(_ list: inout UnsafeMutablePointer<curl_slist>?) -> Int32 {
        guard let exchange, case .channel(let channel) = exchange.upload else { return CURL_TRAILERFUNC_OK }
        for field in channel.trailers {
            guard let longer = unsafe curl_slist_append(list, "\(field.name.rawName): \(field.value)") else {
                return CURL_TRAILERFUNC_ABORT
            }
            unsafe list = unsafe longer
        }
        return CURL_TRAILERFUNC_OK
    }

    private func reportUpload(_ exchange: Exchange) {
        guard let events = exchange.events, state.uploadPace.isDue(at: loop.now) else { return }
        events.receive(.uploadProgress(uploadProgress(exchange)))
    }

    private func rewind(to offset: Int64, from origin: Int32) -> Int32 {
        guard offset == 0, origin == SEEK_SET else { return CURL_SEEKFUNC_CANTSEEK }
        return rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
    }

    /// Goes back to the start of the body, where any of it was read: libcurl itself forgets what it read and did not send.
    private func rewind() -> Bool {
        state.isSendingPaused = false
        guard let exchange, state.bytesSent > 0 else { return exchange != nil }
        guard exchange.upload.isReplayable else {
            state.failure = TransportError.requestBody(.notReplayable, facts())
            return false
        }
        if case .channel(let channel) = exchange.upload { channel.rewind() }
        state.bytesSent = 0
        return true
    }

    // MARK: Progress

    /// How far the download has come: bytes as they travel, which libcurl counts where they were decoded.
    var downloadProgress: TransferProgress {
        let received =
            state.parser.isContentEncoded ? handle.offset(CURLINFO_SIZE_DOWNLOAD_T) : Int64(state.bytesReceived)
        return TransferProgress(completedBytes: received, totalBytes: state.parser.contentLength)
    }

    func uploadProgress(_ exchange: Exchange) -> TransferProgress {
        TransferProgress(completedBytes: Int64(state.bytesSent), totalBytes: exchange.upload.length)
    }
}

extension SocketAddress {
    fileprivate init(_ host: UnsafePointer<CChar>?, port: Int32) {
        self.init(host: unsafe host.map { unsafe String(cString: $0) } ?? "", port: Int(port))
    }
}
