// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import Glibc

// libcurl's callbacks, which find the transfer and pass on the event. They run on the loop's thread, within a call to
// libcurl, so none of them may add or remove a transfer.
//
// No pointer outlives what it points to:
//
// | pointer | why it is valid whenever it is used |
// |---|---|
// | the transfer: `CURLOPT_PRIVATE` and the data of all callbacks but one | the engine's table retains the transfer until it is removed from the multi handle, after which libcurl does not call back for its handle. The name lookup that goes on in a thread of libcurl's has no callback |
// | the loop's state: `CURLOPT_CLOSESOCKETDATA`, and the data of the multi handle's callbacks | a connection may outlive its transfer, but not the multi handle, which is freed before the state (``CurlEngine``) |
// | ``MessageBuffer``: `CURLOPT_ERRORBUFFER` | the transfer owns it, and its handle, which is freed first: stored properties are released in the order of their declaration |
// | the lists of ``HeaderList``: `CURLOPT_HTTPHEADER`, `CURLOPT_CONNECT_TO` | the transfer owns them; libcurl reads them only while the handle is in the multi handle |
// | bytes of a request's body | libcurl reads them into a buffer of its own (`CURLOPT_READFUNCTION`); `CURLOPT_POSTFIELDS` is not used |
// | strings and blobs | libcurl copies them |
// | the shares: `CURLOPT_SHARE` | the loop's state owns them, and outlives all transfers |
// | the arguments of OpenSSL's callbacks, and that of the BIO | ``Handshake`` is retained by the TLS context to which it belongs, which the session and so its BIO retain, the key log by the context |
// | the handle: nghttp2's user data of a stream | see ``HTTP2Sharing``: a connection that may hold frames of an unfinished request is closed when its handle is removed, or libcurl clears the pointer |
// | the transfers of ``HTTP2Monitor`` and ``LoopState`` | removed when the transfer leaves its connection, which is before its handle is freed, and never within a callback |

extension Transfer {
    func installCallbacks() throws(CurlFailure) {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        for option in [
            CURLOPT_PRIVATE, CURLOPT_HEADERDATA, CURLOPT_WRITEDATA, CURLOPT_OPENSOCKETDATA, CURLOPT_PREREQDATA,
            CURLOPT_RESOLVER_START_DATA,
        ] {
            unsafe try handle.set(option, pointer: context)
        }
        unsafe try handle.set(CURLOPT_ERRORBUFFER, pointer: message.start)
        // A connection outlives the transfer that opened it, but not the loop.
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
        if exchange.sendsBody { unsafe try installUploadCallbacks(context) }
        if CurlLibrary.usesOpenSSL, exchange.mayUseTLS { unsafe try installTLSCallback(context) }
    }

    private func installUploadCallbacks(_ context: UnsafeMutableRawPointer) throws(CurlFailure) {
        for option in [CURLOPT_READDATA, CURLOPT_SEEKDATA] { unsafe try handle.set(option, pointer: context) }
        unsafe try check(
            ccurl_set_data_callback(handle.raw, CURLOPT_READFUNCTION) { bytes, size, count, context in
                unsafe Transfer.at(context).sendBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
            })
        unsafe try check(
            ccurl_set_seek_callback(handle.raw) { context, offset, origin in
                unsafe Transfer.at(context).rewind(to: Int64(offset), from: origin)
            })
        guard exchange.request.trailers != nil else { return }
        unsafe try handle.set(CURLOPT_TRAILERDATA, pointer: context)
        unsafe try check(
            ccurl_set_trailer_callback(handle.raw) { list, context in
                guard let list = unsafe list else { return CURL_TRAILERFUNC_ABORT }
                return unsafe Transfer.at(context).sendTrailers(&list.pointee)
            })
    }

    /// Installs OpenSSL callbacks that verify servers in place of libcurl.
    private func installTLSCallback(_ context: UnsafeMutableRawPointer) throws(CurlFailure) {
        unsafe try handle.set(CURLOPT_SSL_CTX_DATA, pointer: context)
        unsafe try check(
            ccurl_set_tls_callback(handle.raw) { handle, context, transfer in
                unsafe Transfer.at(transfer).prepareTLS(of: handle, OpaquePointer(context))
            })
        try handle.markProxies()
    }

    private func check(_ code: CURLcode) throws(CurlFailure) {
        guard code == CURLE_OK else { throw CurlFailure(code: code) }
    }

    /// Returns the transfer of a callback, from the pointer that was registered with the callback.
    private static func at(_ context: UnsafeMutableRawPointer) -> Transfer {
        unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }
}

extension SocketAddress {
    fileprivate init(_ host: UnsafePointer<CChar>?, port: Int32) {
        self.init(host: unsafe host.map { unsafe String(cString: $0) } ?? "", port: Int(port))
    }
}
