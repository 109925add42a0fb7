// SPDX-License-Identifier: MIT

import ANHTTP
import COpenSSL
import FoundationEssentials

/// The TLS configuration of a server, shared by its connections.
///
/// See SSL_CTX_new(3).
@safe final class TLSContext: Sendable {
    /// Reference-counted by OpenSSL under its own lock.
    nonisolated(unsafe) let raw: OpaquePointer
    /// The protocols for ALPN, each preceded by its length; read by the callback.
    private nonisolated(unsafe) let protocols: UnsafeMutableBufferPointer<UInt8>
    /// The OCSP response for clients that ask for one.
    private let staple: Data?
    let ticketsBeforeWrite: (@Sendable (ArraySlice<UInt8>) -> Int)?
    let didWrite: (@Sendable () -> Void)?

    init(_ options: StubServer.TLS) throws(OpenSSLError) {
        ERR_clear_error()
        guard let raw = unsafe SSL_CTX_new(TLS_server_method()) else { throw .last("SSL_CTX_new") }
        unsafe self.raw = unsafe raw
        staple = options.staple
        (ticketsBeforeWrite, didWrite) = (options.ticketsBeforeWrite, options.didWrite)
        let wire = options.protocols.flatMap { [UInt8(clamping: $0.utf8.count)] + $0.utf8.prefix(255) }
        unsafe protocols = .allocate(capacity: wire.count)
        unsafe _ = protocols.initialize(from: wire)
        try setVersions(options)
        try setCertificate(options.certificate)
        if let authority = options.clientAuthority {
            try requestClient(of: authority, isRequired: options.requiresClientCertificate)
        }
        if staple != nil { answerWithStaple() }
        guard !wire.isEmpty else { return }
        unsafe SSL_CTX_set_alpn_select_cb(
            raw,
            { _, chosen, length, offered, offeredLength, context in
                guard let context = unsafe context, let chosen = unsafe chosen else { return SSL_TLSEXT_ERR_NOACK }
                let own = unsafe Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().protocols
                var selected: UnsafeMutablePointer<UInt8>?
                guard
                    unsafe SSL_select_next_proto(
                        &selected, length, own.baseAddress, UInt32(own.count), offered, offeredLength)
                        == OPENSSL_NPN_NEGOTIATED
                else { return SSL_TLSEXT_ERR_NOACK }
                unsafe chosen.pointee = unsafe UnsafePointer(selected)
                return SSL_TLSEXT_ERR_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        unsafe SSL_CTX_free(raw)
        unsafe protocols.deallocate()
    }

    private func setVersions(_ options: StubServer.TLS) throws(OpenSSLError) {
        // OpenSSL 3 permits obsolete versions only at security level 0. See SSL_CTX_set_security_level(3).
        if options.minimumVersion < .v1_2 { unsafe SSL_CTX_set_security_level(raw, 0) }
        guard unsafe copenssl_ctx_set_min_version(raw, options.minimumVersion.number) == 1,
            unsafe copenssl_ctx_set_max_version(raw, options.maximumVersion?.number ?? 0) == 1
        else { throw .last("SSL_CTX_set_min_proto_version") }
    }

    private func setCertificate(_ certificate: TestCertificate) throws(OpenSSLError) {
        var isFirst = true
        try X509Handle.forEach(inPEM: certificate.chainPEM) { link throws(OpenSSLError) in
            let code =
                unsafe isFirst
                ? SSL_CTX_use_certificate(raw, link.raw) : copenssl_ctx_add1_chain_certificate(raw, link.raw)
            guard code == 1 else { throw .last("SSL_CTX_use_certificate") }
            isFirst = false
        }
        let key = try PrivateKeyHandle(pem: certificate.privateKeyPEM)
        guard unsafe SSL_CTX_use_PrivateKey(raw, key.raw) == 1 else { throw .last("SSL_CTX_use_PrivateKey") }
    }

    private func answerWithStaple() {
        unsafe copenssl_ctx_answer_with_staple(
            raw,
            { session, context in
                guard let session = unsafe session, let context = unsafe context,
                    let staple = unsafe Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().staple
                else { return SSL_TLSEXT_ERR_NOACK }
                let isSet = unsafe staple.withUnsafeBytes { bytes in
                    unsafe copenssl_set_staple(session, bytes.baseAddress, bytes.count)
                }
                return isSet == 1 ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func requestClient(of authority: Data, isRequired: Bool) throws(OpenSSLError) {
        let store = unsafe SSL_CTX_get_cert_store(raw)
        try X509Handle.forEach(inPEM: authority) { root throws(OpenSSLError) in
            guard unsafe X509_STORE_add_cert(store, root.raw) == 1 else { throw .last("X509_STORE_add_cert") }
            guard unsafe SSL_CTX_add_client_CA(raw, root.raw) == 1 else { throw .last("SSL_CTX_add_client_CA") }
        }
        unsafe SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | (isRequired ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
        // Required to resume sessions with client certificates. See SSL_CTX_set_session_id_context(3).
        unsafe SSL_CTX_set_session_id_context(raw, [1], 1)
    }
}

extension TLSVersion {
    /// OpenSSL's number of the version.
    fileprivate var number: Int32 {
        switch self {
        case .v1_0: TLS1_VERSION
        case .v1_1: TLS1_1_VERSION
        case .v1_2: TLS1_2_VERSION
        case .v1_3: TLS1_3_VERSION
        }
    }
}
