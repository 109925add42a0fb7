// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import COpenSSL
import FoundationEssentials
import Glibc

/// The receiver of OpenSSL's callbacks for one connection, on the loop's thread. OpenSSL retains it as long as the
/// connection.
final class Handshake {
    let security: ConnectionSecurity
    let host: HostName
    /// The transfer for which the connection is made.
    private weak var transfer: Transfer?
    private let isResolver: Bool
    private let mayResume: Bool
    /// The result of the verification, kept while a stapled OCSP response may still change it.
    private var result: TrustResult?
    /// The sessions that the server has sent.
    private var tickets = SessionTickets()
    /// Whether the server has sent `close_notify`. Without it, an attacker who cuts the connection could truncate a
    /// response. See RFC 8446 §6.1.
    private(set) var isClosedByServer = false
    /// Whether a failure to send was hidden from OpenSSL; see ``Transfer/expectSendFailure()``.
    var hasLostOutput = false

    /// Creates the handshake of a connection to a server, or to a DNS-over-HTTPS resolver used by a transfer.
    ///
    /// - Parameter mayResume: Whether cached sessions were established with the same security settings. A resumed
    ///   session presents no certificates: it would be trusted because of authorities that may have been removed.
    init(
        _ security: ConnectionSecurity, host: HostName, transfer: Transfer, isResolver: Bool, mayResume: Bool
    ) {
        self.isResolver = isResolver
        self.mayResume = mayResume
        self.security = security
        self.host = host
        self.transfer = transfer
    }

    // MARK: Installing

    /// Sets the callbacks of a connection's TLS context. See SSL_CTX_set_cert_verify_callback(3).
    func install(into context: OpaquePointer) -> Bool {
        let pointer = unsafe Unmanaged.passRetained(self).toOpaque()
        guard unsafe SSL_CTX_set_ex_data(context, Self.index, pointer) == 1 else {
            unsafe Unmanaged<Handshake>.fromOpaque(pointer).release()
            return false
        }
        unsafe SSL_CTX_set_cert_verify_callback(
            context,
            { context, pointer in
                guard let context = unsafe context, let pointer = unsafe pointer else { return 0 }
                return unsafe Unmanaged<Handshake>.fromOpaque(pointer).takeUnretainedValue().verify(context) ? 1 : 0
            }, pointer)
        // libcurl 8.23 would complete the handshake with an untrusted server, which would receive the client's
        // certificate.
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        unsafe tickets.install(into: context, mayResume: mayResume)
        unsafe SSL_CTX_set_info_callback(context) { session, kind, value in
            switch kind {
            case SSL_CB_HANDSHAKE_START:
                // libcurl has set the session of its cache. In 8.23, unlike in 7.88, CURLOPT_SSL_SESSIONID_CACHE cannot
                // prevent that in the callback for the context. A copy is used: before 8.10, handshakes on several threads
                // would have the same object, which they change.
                // In a renegotiation, which has a message of the first handshake, it is the session of the connection.
                var byte: UInt8 = 0
                guard let session = unsafe session, unsafe SSL_get_finished(session, &byte, 0) == 0,
                    let cached = unsafe SSL_get_session(session)
                else { break }
                let mayResume = unsafe Handshake.of(session)?.mayResume != false
                let copy = unsafe mayResume ? SSL_SESSION_dup(cached) : nil
                unsafe SSL_set_session(session, copy)
                if let copy = unsafe copy { unsafe SSL_SESSION_free(copy) }
            case SSL_CB_READ_ALERT: unsafe Handshake.of(session)?.receiveAlert(value & 0xff)
            default: break
            }
        }
        if security.policy.stapling != .ignored {
            unsafe copenssl_ctx_ask_for_staple(
                context,
                { session, pointer in
                    guard let session = unsafe session, let pointer = unsafe pointer else { return 0 }
                    return unsafe Unmanaged<Handshake>.fromOpaque(pointer).takeUnretainedValue().checkStaple(session)
                        ? 1 : 0
                }, pointer)
        }
        if security.keyLog != nil {
            unsafe SSL_CTX_set_keylog_callback(context) { session, line in
                guard let line = unsafe line else { return }
                unsafe Handshake.of(session)?.security.keyLog?.append(String(cString: line))
            }
        }
        if let identity = security.identity { return unsafe identity.install(into: context) }
        if security.identity == nil { unsafe Self.askForIdentity(context) }
        return true
    }

    /// Returns the handshake of a TLS session; `nil` if the connection is not verified by this class.
    static func of(_ session: OpaquePointer?) -> Handshake? {
        guard let pointer = unsafe SSL_CTX_get_ex_data(SSL_get_SSL_CTX(session), index) else { return nil }
        return unsafe Unmanaged<Handshake>.fromOpaque(pointer).takeUnretainedValue()
    }

    /// The index at which a TLS context stores its handshake. See CRYPTO_get_ex_new_index(3).
    private static let index = unsafe CRYPTO_get_ex_new_index(
        CRYPTO_EX_INDEX_SSL_CTX, 0, nil, nil, nil,
        { _, pointer, _, _, _, _ in
            guard let pointer = unsafe pointer else { return }
            unsafe Unmanaged<Handshake>.fromOpaque(pointer).release()
        })

    // MARK: Callbacks

    /// Verifies the server's certificates.
    private func verify(_ context: OpaquePointer) -> Bool {
        OpenSSLErrors.contained {
            let session = unsafe X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx())
                .map { OpaquePointer($0) }
            let verifier = unsafe ChainVerifier(
                context, security, name: name(session), level: session.map { unsafe SSL_get_security_level($0) } ?? 0)
            let policy = security.policy
            let judgement = policy.evaluate(
                host: host.text, expectedKeys: security.pinnedKeys, at: security.now, verify: verifier.verify,
                trust: verifier.trust)
            unsafe verifier.conclude(context, isRefused: judgement.isRefused)
            // Reading the certificates costs more than verifying a pin, so it is done only if they are needed.
            guard judgement.failure != nil || policy.observer != nil || policy.stapling != .ignored else { return true }
            let result = policy.result(judgement, verifier.trust(judgement.failure))
            if policy.stapling != .ignored, !result.isRefused {
                self.result = result
            } else {
                report(result)
            }
            return !judgement.isRefused
        }
    }

    /// Returns the server name that libcurl requested: the URL's host, in its ASCII form if it is internationalized.
    private func name(_ session: OpaquePointer?) -> HostName {
        guard host.isInternational, let name = unsafe SSL_get_servername(session, TLSEXT_NAMETYPE_host_name) else {
            return host
        }
        return HostName(unsafe String(cString: name))
    }

    /// Checks the stapled OCSP response, or its absence.
    private func checkStaple(_ session: OpaquePointer) -> Bool {
        guard var result else { return true }
        self.result = nil
        return OpenSSLErrors.contained {
            if let failure = unsafe OCSPStaple.failure(of: session, security), result.trust.failure == nil {
                result.trust.failure = failure
                // The chain is valid: it was verified before the stapled response was requested.
                result.isRefused = !security.policy.isAudited
            }
            report(result)
            return !result.isRefused
        }
    }

    private func report(_ result: TrustResult) {
        if result.isRefused, let failure = result.trust.failure { refuse(failure, result.trust) }
        security.policy.observer?(result)
    }

    /// Whether the TLS session is read outside of libcurl, which cannot store the sessions that the server sends meanwhile.
    var isReadAhead: Bool {
        get { tickets.areHeld }
        set { tickets.areHeld = newValue }
    }

    /// Passes on the sessions that libcurl could not store before. Called while it reads from the TLS session.
    func storeTickets(of session: OpaquePointer) {
        unsafe tickets.store(for: session)
    }

    fileprivate func receive(_ ticket: OpaquePointer, of session: OpaquePointer) -> Int32 {
        unsafe tickets.receive(ticket, of: session)
    }

    private func receiveAlert(_ description: Int32) {
        switch description {
        case SSL_AD_CLOSE_NOTIFY:
            isClosedByServer = true
        case SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE, SSL_AD_CERTIFICATE_REVOKED,
            SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA, SSL_AD_CERTIFICATE_REQUIRED:
            // An alert from a server about a certificate concerns the client's certificate.
            refuse(.clientCertificateRefused, nil)
        default: break
        }
    }

    /// Notes that the server requested a client certificate and none is available.
    func noteMissingIdentity() {
        if !isResolver { transfer?.state.connection.lacksIdentity = true }
    }

    /// Records the reason for which the exchange's connection was rejected.
    func refuse(_ failure: TransportError.TLSFailure, _ trust: ServerTrust?) {
        transfer?.state.connection.refusal = TransferConnection.Refusal(failure: failure, trust: trust)
    }
}

extension Handshake {
    /// Installs the callback that selects a client identity when the server requests a certificate. See
    /// SSL_CTX_set_cert_cb(3): on a client, it is called only in this case.
    static func askForIdentity(_ context: OpaquePointer) {
        unsafe SSL_CTX_set_cert_cb(
            context,
            { session, _ in
                guard let session = unsafe session, let handshake = unsafe Handshake.of(session) else { return 1 }
                return unsafe handshake.chooseIdentity(for: session) ? 1 : 0
            }, nil)
    }

    /// Installs the selected identity. Returns `false` if it cannot be used, which aborts the handshake.
    private func chooseIdentity(for session: OpaquePointer) -> Bool {
        switch security.identityChooser?.choose(for: host.text) {
        case nil, .some(.none):
            noteMissingIdentity()
            return true
        case .refuse(let reason):
            refuse(.rejected(reason), nil)
            return false
        case .identity(let identity):
            do throws(SecurityFailure) {
                let loaded = try LoadedIdentity(identity)
                try loaded.check(at: security.now)
                return unsafe loaded.install(intoSession: session)
            } catch {
                refuse(error.failure ?? .handshake, nil)
                return false
            }
        }
    }
}

/// The sessions that a server has sent, for libcurl's function that stores them.
///
/// With TLS 1.3 they follow the handshake. libcurl ignores those that OpenSSL receives outside of libcurl's own calls, such
/// as when frames of HTTP/2 are read ahead; see ``HTTP2Monitor``. See SSL_CTX_sess_set_new_cb(3).
@safe
private struct SessionTickets: ~Copyable {
    private var function: (@convention(c) (OpaquePointer?, OpaquePointer?) -> Int32)?
    private var held: [OpaquePointer] = unsafe []
    /// Whether libcurl cannot store a session at present.
    var areHeld = false
    /// The number of the latest sessions that are held; servers send two.
    private static let maximumHeld = 4

    deinit {
        unsafe held.forEach { unsafe SSL_SESSION_free($0) }
    }

    mutating func install(into context: OpaquePointer, mayResume: Bool) {
        unsafe function = mayResume ? SSL_CTX_sess_get_new_cb(context) : nil
        guard unsafe function != nil else { return unsafe SSL_CTX_sess_set_new_cb(context, nil) }
        unsafe SSL_CTX_sess_set_new_cb(context) { session, ticket in
            guard let session = unsafe session, let ticket = unsafe ticket else { return 0 }
            return unsafe Handshake.of(session)?.receive(ticket, of: session) ?? 0
        }
    }

    /// Returns 1 if the ticket is owned by libcurl now, and otherwise 0.
    mutating func receive(_ ticket: OpaquePointer, of session: OpaquePointer) -> Int32 {
        guard areHeld else { return unsafe function?(session, ticket) ?? 0 }
        unsafe SSL_SESSION_up_ref(ticket)
        if unsafe held.count == Self.maximumHeld { unsafe SSL_SESSION_free(held.removeFirst()) }
        unsafe held.append(ticket)
        return 0
    }

    mutating func store(for session: OpaquePointer) {
        while let ticket = unsafe held.popLast() {
            if unsafe function?(session, ticket) != 1 { unsafe SSL_SESSION_free(ticket) }
        }
    }
}

/// A file to which the TLS secrets of connections are appended, in NSS format. See SSL_CTX_set_keylog_callback(3).
final class KeyLog: Sendable {
    private let file: FileDescriptor

    /// Opens the file, or creates one that only the current user can read. A pipe must have a reader; neither opening
    /// nor writing one waits, because the loop does both.
    init(path: String) throws(SecurityFailure) {
        do throws(SystemError) {
            file = try FileDescriptor(opening: path, flags: O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, mode: 0o600)
        } catch {
            throw SecurityFailure(failure: .keyLog(path: path))
        }
    }

    /// Appends a line. Write errors are ignored: the log is a debugging aid.
    func append(_ line: String) {
        try? file.writeAll(Data((line + "\n").utf8).bytes)
    }
}

// The policy for TLS connections to servers is evaluated here, during the handshake, not by libcurl. libcurl verifies
// proxies.

extension Transfer {
    /// Makes OpenSSL read one record at a time. libcurl 8.15 and later make it read several: those after a response would be
    /// found in the socket, but not in the session of a proxy, before the connection is used again, and SSL_read(3) goes on
    /// as long as a part of a record remains.
    private static func readSingleRecords(_ context: OpaquePointer) {
        unsafe _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_READ_AHEAD, 0, nil)
    }

    /// Configures the TLS context that libcurl has created for a connection. See CURLOPT_SSL_CTX_FUNCTION(3).
    func prepareTLS(of handle: UnsafeMutableRawPointer?, _ context: OpaquePointer) -> CURLcode {
        // libcurl would otherwise honour `SSLKEYLOGFILE`.
        unsafe SSL_CTX_set_keylog_callback(context, nil)
        guard !Self.isAnyContextMarked || !mayUseTLSProxy else {
            let reason = "OpenSSL's configuration sets the option Bugs, with which proxies over TLS cannot be used."
            state.failure = failure(.invalidRequest(.option(reason)))
            return CURLE_SSL_CERTPROBLEM
        }
        if !Self.isAnyContextMarked, unsafe Self.takeProxyMark(from: context) {
            unsafe Self.readSingleRecords(context)
            return CURLE_OK
        }
        // For DNS over HTTPS, libcurl creates its own handle from this one's options. A policy for the server does not apply
        // to the resolver.
        let resolver = unsafe handle == self.handle.raw ? nil : exchange.options.connection.dnsOverHTTPS
        // SSL_read(3) would otherwise skip records without data as long as the server sends any, such as session tickets, and
        // occupy the loop. Within the session of a proxy, what remains of a record would not be found in the socket.
        if resolver != nil || !mayUseTLSProxy {
            unsafe _ = SSL_CTX_ctrl(context, SSL_CTRL_CLEAR_MODE, Int(SSL_MODE_AUTO_RETRY), nil)
            unsafe Self.readSingleRecords(context)
        }
        do throws(TransportError) {
            let security: ConnectionSecurity?
            if let resolver {
                // That handle reads the environment, and its contexts for proxies have no mark.
                guard !ProxyPolicy.environment.mayUseTLS(for: resolver) else {
                    throw failure(.unsupported("DNS over HTTPS through a proxy over TLS"))
                }
                security = try loop.context.securities.plain(exchange.sharedOptions, for: resolver)
            } else {
                security = try currentSecurity()
            }
            guard let security else { return CURLE_SSL_CERTPROBLEM }
            // Sessions are cached under the key of the security settings with which the handle was created.
            let handshake = Handshake(
                security, host: HostName(resolver ?? exchange.request.url), transfer: self,
                isResolver: resolver != nil,
                mayResume: security === exchange.security && security.identityChooser == nil)
            if unsafe handshake.install(into: context) { return CURLE_OK }
            // The remaining steps can fail only for lack of memory.
            let reason = OpenSSLErrors.takeReason()
            state.failure = failure(.tls(.badClientIdentity(.malformed(reason))))
            return CURLE_SSL_CERTPROBLEM
        } catch {
            state.failure = error
            return CURLE_SSL_CERTPROBLEM
        }
    }

    /// Returns the security settings for a new connection, reloaded if their files have changed.
    private func currentSecurity() throws(TransportError) -> ConnectionSecurity? {
        guard let security = exchange.security, !security.isCurrent else { return exchange.security }
        return try loop.context.securities.current(exchange.sharedOptions, for: exchange.request.url)
    }

    /// Whether the context is that of a connection to a proxy. libcurl does not report this, but
    /// ``EasyHandle/markProxies()`` makes it set an option, which has no effect since TLS 1.1, on contexts for proxies
    /// only, unless ``isAnyContextMarked``.
    private static func takeProxyMark(from context: OpaquePointer) -> Bool {
        guard unsafe SSL_CTX_get_options(context) & COPENSSL_OP_DONT_INSERT_EMPTY_FRAGMENTS != 0 else { return false }
        unsafe _ = SSL_CTX_clear_options(context, COPENSSL_OP_DONT_INSERT_EMPTY_FRAGMENTS)
        return true
    }

    /// Whether OpenSSL sets the mark of proxies on all contexts, as by `Options = Bugs` in the system's configuration. See
    /// SSL_CONF_cmd(3).
    private static let isAnyContextMarked: Bool = {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { return true }
        defer { unsafe SSL_CTX_free(context) }
        return unsafe takeProxyMark(from: context)
    }()
}

extension EasyHandle {
    /// Marks the TLS contexts of connections to proxies, for detection by ``Transfer/takeProxyMark(from:)``.
    func markProxies() throws(CurlFailure) {
        try set(CURLOPT_PROXY_SSL_OPTIONS, Int(CURLSSLOPT_ALLOW_BEAST))
    }

    /// Sets the key by which libcurl searches for a connection or session to reuse: that of the security settings, the local
    /// interface and the resolver, and the generation of the origin's connections. libcurl compares neither callbacks nor
    /// each of these, but the directory of authorities, which is otherwise unused.
    func setKey(
        of security: ConnectionSecurity, _ options: ConnectionOptions, generation: Int
    ) throws(CurlFailure) {
        var key = security.key
        if let interface = options.localInterface { key += "@\(interface)" }
        if let resolver = options.dnsOverHTTPS { key += "@\(resolver.absoluteString)" }
        if generation != 0 { key += "#\(generation)" }
        try set(CURLOPT_CAPATH, key)
        if CurlDefects.current.contains(.ignoredDirectory) {
            try set(CURLOPT_CAINFO_BLOB, blob: CurlRoots.noAuthority + Data("# \(key)\n".utf8))
        }
    }

    /// Sets the TLS options that represent the security settings.
    func apply(_ security: ConnectionSecurity, _ options: borrowing TransferOptions) throws(CurlFailure) {
        try setKey(of: security, options.connection, generation: 0)
        // libcurl checks the name as well, by its own rules.
        let policy = security.policy
        if !policy.validatesDomainName || policy.evaluator != nil { try set(CURLOPT_SSL_VERIFYHOST, 0) }
        // A resumed session presents no certificates, neither the server's nor the one that would be chosen.
        if !options.tls.resumesSessions || !security.isPlain || security.identityChooser != nil {
            try set(CURLOPT_SSL_SESSIONID_CACHE, false)
        }
    }
}
