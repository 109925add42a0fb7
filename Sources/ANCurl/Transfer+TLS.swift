// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import COpenSSL
import FoundationEssentials

// The rules for TLS connections with servers are not libcurl's: they are evaluated here, within the handshake. libcurl
// verifies proxies.

extension Transfer {
    /// libcurl has made the context of a connection. See CURLOPT_SSL_CTX_FUNCTION(3).
    func prepareTLS(of handle: UnsafeMutableRawPointer?, _ context: OpaquePointer) -> CURLcode {
        // libcurl would obey `SSLKEYLOGFILE`.
        unsafe SSL_CTX_set_keylog_callback(context, nil)
        guard unsafe !Self.takeProxyMark(from: context) else { return CURLE_OK }
        do throws(TransportError) {
            // For DNS over HTTPS libcurl makes a handle of its own, of this one's options. Its server is not the one that
            // a policy is for.
            let resolver = unsafe handle == self.handle.raw ? nil : exchange.options.connection.dnsOverHTTPS
            let security: ConnectionSecurity?
            if let resolver {
                security = try loop.securities.plain(exchange.sharedOptions, for: resolver)
            } else {
                security = try currentSecurity()
            }
            guard let security else { return CURLE_SSL_CERTPROBLEM }
            if security !== exchange.security, let handle = unsafe handle {
                // Sessions are found by the key of the security that the handle began with, and a resumed session shows
                // no certificates: it would be trusted by authorities that may have been removed.
                unsafe _ = ccurl_set_long(handle, CURLOPT_SSL_SESSIONID_CACHE, 0)
            }
            let handshake = Handshake(
                security, host: HostName(resolver ?? exchange.request.url), transfer: self, isResolver: resolver != nil)
            if unsafe handshake.install(into: context) { return CURLE_OK }
            // What else is installed needs memory only.
            let reason = OpenSSLErrors.takeReason()
            state.failure = TransportError.tls(.badClientIdentity(.malformed(reason)), facts())
            return CURLE_SSL_CERTPROBLEM
        } catch {
            state.failure = error
            return CURLE_SSL_CERTPROBLEM
        }
    }

    /// The security of a new connection; what it was made of is read again if its files have changed.
    private func currentSecurity() throws(TransportError) -> ConnectionSecurity? {
        guard let security = exchange.security, !security.isCurrent else { return exchange.security }
        return try loop.securities.current(exchange.sharedOptions, for: exchange.request.url)
    }

    /// Whether the context is that of a connection with a proxy. libcurl does not say; but ``EasyHandle/markProxies()`` has
    /// it set an option, without effect since TLS 1.1, for proxies only.
    private static func takeProxyMark(from context: OpaquePointer) -> Bool {
        guard unsafe SSL_CTX_get_options(context) & COPENSSL_OP_DONT_INSERT_EMPTY_FRAGMENTS != 0 else { return false }
        unsafe _ = SSL_CTX_clear_options(context, COPENSSL_OP_DONT_INSERT_EMPTY_FRAGMENTS)
        return true
    }
}

extension EasyHandle {
    /// Makes contexts of connections with proxies known: ``Transfer/takeProxyMark(from:)`` looks for it.
    func markProxies() throws(CurlFailure) {
        try set(CURLOPT_PROXY_SSL_OPTIONS, Int(CURLSSLOPT_ALLOW_BEAST))
    }

    /// libcurl compares no callbacks when it looks for a connection, or a session, that was made with the same options. So
    /// one of the options that it compares, a folder of authorities which it has no use for, stands for the security.
    func apply(_ security: ConnectionSecurity, resumesSessions: Bool) throws(CurlFailure) {
        try set(CURLOPT_CAPATH, security.key)
        // A second look at the name, by libcurl's own rules.
        let policy = security.policy
        if !policy.validatesDomainName || policy.evaluator != nil { try set(CURLOPT_SSL_VERIFYHOST, 0) }
        // A resumed session shows no certificates.
        if !resumesSessions || !security.isPlain { try set(CURLOPT_SSL_SESSIONID_CACHE, false) }
    }
}
