// SPDX-License-Identifier: MIT

import CCurl
import COpenSSL
import Glibc

/// The bytes of a connection that libcurl has made and attached to an easy handle. Used on the loop's thread only.
///
/// curl_easy_send(3) and curl_easy_recv(3) search all open connections for the handle's, at every call. Once the
/// connection is established, its socket or its TLS session is used directly.
@safe struct ConnectionStream {
    private let source: Source

    @safe private enum Source {
        case handle(UnsafeMutableRawPointer)
        case socket(Int32)
        case session(OpaquePointer)
    }

    /// A failure to send or receive.
    enum Failure: Error {
        case libcurl(CURLcode)
        /// An error of the system; `nil` if TLS failed for another reason.
        case system(Int32?)
    }

    /// Sends and receives by libcurl.
    init(_ handle: borrowing EasyHandle) {
        source = unsafe .handle(handle.raw)
    }

    /// Sends and receives on a socket.
    init(socket: Int32) {
        source = .socket(socket)
    }

    /// Sends and receives by a TLS session, whose source and sink become the socket; `nil` if memory is exhausted.
    ///
    /// libcurl's own source and sink work only within a call to libcurl. The loop's thread blocks SIGPIPE, which
    /// write(2) would raise.
    init?(_ session: OpaquePointer, socket: Int32) {
        guard let bio = unsafe BIO_new_socket(socket, BIO_NOCLOSE) else { return nil }
        unsafe SSL_set_bio(session, bio, bio)
        // Bytes that were not accepted may be offered again at another address.
        unsafe copenssl_accept_moving_writes(session)
        source = unsafe .session(session)
    }

    /// The socket, if bytes can also be sent on it by ``send(_:on:)``.
    var socket: Int32? {
        if case .socket(let socket) = source { socket } else { nil }
    }

    /// Sends bytes, of which there is at least one.
    ///
    /// - Returns: The number of bytes that were accepted; 0 if the connection accepts none at present.
    func send(_ bytes: ArraySlice<UInt8>) throws(Failure) -> Int {
        switch source {
        case .handle(let handle):
            var count = 0
            let code = unsafe bytes.withUnsafeBytes { bytes in
                unsafe curl_easy_send(handle, bytes.baseAddress, bytes.count, &count)
            }
            guard code == CURLE_OK || code == CURLE_AGAIN else { throw .libcurl(code) }
            return code == CURLE_OK ? count : 0
        case .socket(let socket):
            return try Self.send(bytes, on: socket)
        case .session(let session):
            ERR_clear_error()
            errno = 0
            let count = unsafe bytes.withUnsafeBytes { bytes in
                unsafe SSL_write(session, bytes.baseAddress, Int32(clamping: bytes.count))
            }
            return try unsafe Self.check(count, session) == .bytes ? Int(count) : 0
        }
    }

    /// Receives bytes.
    ///
    /// - Returns: Their number, 0 if there are none at present, or `nil` at the end of the connection; and whether there
    ///   may be more.
    func receive(into buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> (count: Int?, hasMore: Bool) {
        switch source {
        case .handle(let handle):
            var count = 0
            let code = unsafe curl_easy_recv(handle, buffer.baseAddress, buffer.count, &count)
            guard code != CURLE_AGAIN else { return (0, false) }
            guard code == CURLE_OK else { throw .libcurl(code) }
            return count == 0 ? (nil, false) : (count, true)
        case .socket(let socket):
            let count = unsafe recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            guard count != 0 else { return (nil, false) }
            guard count > 0 else {
                guard errno == EAGAIN || errno == EINTR else { throw .system(errno) }
                return (0, errno == EINTR)
            }
            return (count, count == buffer.count)
        case .session(let session):
            ERR_clear_error()
            errno = 0
            let count = unsafe SSL_read(session, buffer.baseAddress, Int32(clamping: buffer.count))
            switch try unsafe Self.check(count, session) {
            case .bytes: return (Int(count), true)
            case .none: return (0, false)
            case .end: return (nil, false)
            }
        }
    }

    /// Sends bytes on a socket; returns 0 if it accepts none at present. Callable from any thread.
    static func send(_ bytes: ArraySlice<UInt8>, on socket: Int32) throws(Failure) -> Int {
        let count = unsafe bytes.withUnsafeBytes { bytes in
            unsafe Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
        guard count < 0 else { return count }
        guard errno == EAGAIN || errno == EINTR else { throw .system(errno) }
        return 0
    }

    private enum Outcome {
        case bytes, none, end
    }

    /// Interprets the result of SSL_read(3) or SSL_write(3).
    private static func check(_ result: Int32, _ session: OpaquePointer) throws(Failure) -> Outcome {
        guard result <= 0 else { return .bytes }
        let systemError = errno
        switch unsafe SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .none
        case SSL_ERROR_ZERO_RETURN: return .end
        case SSL_ERROR_SYSCALL where systemError != 0: throw .system(systemError)
        default: throw .system(nil)
        }
    }
}
