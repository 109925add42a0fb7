// SPDX-License-Identifier: MIT

import COpenSSL

/// The server side of a TLS connection over a blocking socket, which it does not own; used by one thread.
///
/// OpenSSL writes with write(2), so the thread must block SIGPIPE, as `SystemThread` does.
@safe struct TLSSession: ~Copyable {
    private let raw: OpaquePointer
    private let context: TLSContext
    /// Whether a fatal error occurred, after which SSL_shutdown(3) must not be called.
    private var isBroken = false

    /// Creates a session; ``accept()`` performs the handshake.
    init(_ context: TLSContext, descriptor: Int32) throws(OpenSSLError) {
        ERR_clear_error()
        guard let raw = unsafe SSL_new(context.raw) else { throw .last("SSL_new") }
        guard unsafe SSL_set_fd(raw, descriptor) == 1 else {
            unsafe SSL_free(raw)
            throw .last("SSL_set_fd")
        }
        unsafe self.raw = unsafe raw
        self.context = context
    }

    deinit {
        unsafe SSL_free(raw)
    }

    /// Performs the handshake.
    mutating func accept() throws(OpenSSLError) {
        ERR_clear_error()
        guard unsafe SSL_accept(raw) == 1 else {
            isBroken = true
            throw .last("SSL_accept")
        }
    }

    /// Reads available bytes, and waits for at least one; returns 0 at the end of the connection.
    mutating func receive(into buffer: inout [UInt8]) throws(OpenSSLError) -> Int {
        ERR_clear_error()
        var count = 0
        let code = unsafe buffer.withUnsafeMutableBytes { unsafe SSL_read_ex(raw, $0.baseAddress, $0.count, &count) }
        if code == 1 { return count }
        if unsafe SSL_get_error(raw, code) == SSL_ERROR_ZERO_RETURN { return 0 }
        isBroken = true
        throw .last("SSL_read_ex")
    }

    /// Writes all bytes, at least one, after the session tickets for which the server's options ask.
    mutating func send(_ bytes: ArraySlice<UInt8>) throws(OpenSSLError) {
        if let tickets = context.ticketsBeforeWrite?(bytes), tickets > 0 {
            try send(bytes, after: tickets)
        } else {
            try write(bytes)
        }
        context.didWrite?()
    }

    /// Writes tickets and bytes to memory, and from there to the socket. See SSL_new_session_ticket(3).
    private mutating func send(_ bytes: ArraySlice<UInt8>, after tickets: Int) throws(OpenSSLError) {
        ERR_clear_error()
        guard let socket = unsafe SSL_get_wbio(raw), let memory = unsafe BIO_new(BIO_s_mem()) else {
            throw .last("BIO_new")
        }
        unsafe BIO_up_ref(socket)
        unsafe SSL_set0_wbio(raw, memory)
        defer { unsafe SSL_set0_wbio(raw, socket) }
        for _ in 0..<tickets {
            guard unsafe SSL_new_session_ticket(raw) == 1, unsafe SSL_do_handshake(raw) == 1 else {
                throw .last("SSL_new_session_ticket")
            }
        }
        try write(bytes)
        var start: UnsafeMutablePointer<CChar>?
        var left = unsafe copenssl_bio_bytes(memory, &start)
        while left > 0 {
            let count = unsafe BIO_write(socket, start, Int32(clamping: left))
            guard count > 0 else { throw .last("BIO_write") }
            unsafe start = start?.advanced(by: Int(count))
            left -= Int(count)
        }
    }

    private mutating func write(_ bytes: ArraySlice<UInt8>) throws(OpenSSLError) {
        ERR_clear_error()
        var count = 0
        guard unsafe bytes.withUnsafeBytes({ unsafe SSL_write_ex(raw, $0.baseAddress, $0.count, &count) }) == 1 else {
            isBroken = true
            throw .last("SSL_write_ex")
        }
    }

    /// Announces the end of sending (`close_notify`).
    mutating func finishSending() {
        guard !isBroken else { return }
        ERR_clear_error()
        unsafe SSL_shutdown(raw)
        ERR_clear_error()
    }

    /// The result of the handshake.
    var summary: RecordedRequest.TLSSummary {
        var chosen: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        unsafe SSL_get0_alpn_selected(raw, &chosen, &length)
        let name = unsafe SSL_get_servername(raw, TLSEXT_NAMETYPE_host_name)
        return unsafe RecordedRequest.TLSSummary(
            version: String(cString: SSL_get_version(raw)),
            cipher: String(cString: SSL_CIPHER_get_name(SSL_get_current_cipher(raw))),
            serverName: name.map { unsafe String(cString: $0) },
            applicationProtocol: chosen.map {
                unsafe String(decoding: UnsafeBufferPointer(start: $0, count: Int(length)), as: UTF8.self)
            },
            isResumed: SSL_session_reused(raw) == 1, clientName: clientName)
    }

    private var clientName: String? {
        guard let certificate = unsafe SSL_get1_peer_certificate(raw) else { return nil }
        let owned = unsafe X509Handle(takingOwnershipOf: certificate)
        var text = [CChar](repeating: 0, count: 256)
        let count = unsafe X509_NAME_get_text_by_NID(
            X509_get_subject_name(owned.raw), NID_commonName, &text, Int32(text.count))
        guard count >= 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
