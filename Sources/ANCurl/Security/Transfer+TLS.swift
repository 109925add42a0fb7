// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import COpenSSL
import FoundationEssentials

// The policy for TLS connections to servers is evaluated here, during the handshake, not by libcurl. libcurl verifies
// proxies.

extension Transfer {
    /// Configures the TLS context that libcurl has created for a connection. See CURLOPT_SSL_CTX_FUNCTION(3).
    func prepareTLS(of handle: UnsafeMutableRawPointer?, _ context: OpaquePointer) -> CURLcode {
        // libcurl would otherwise honour `SSLKEYLOGFILE`.
        unsafe SSL_CTX_set_keylog_callback(context, nil)
        guard unsafe !Self.takeProxyMark(from: context) else { return CURLE_OK }
        do throws(TransportError) {
            // For DNS over HTTPS, libcurl creates its own handle from this one's options. A policy for the server does
            // not apply to the resolver.
            let resolver = unsafe handle == self.handle.raw ? nil : exchange.options.connection.dnsOverHTTPS
            let security: ConnectionSecurity?
            if let resolver {
                security = try loop.securities.plain(exchange.sharedOptions, for: resolver)
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
        return try loop.securities.current(exchange.sharedOptions, for: exchange.request.url)
    }

    /// Whether the context is that of a connection to a proxy. libcurl does not report this, but
    /// ``EasyHandle/markProxies()`` makes it set an option, which has no effect since TLS 1.1, on contexts for proxies
    /// only.
    private static func takeProxyMark(from context: OpaquePointer) -> Bool {
        guard unsafe SSL_CTX_get_options(context) & COPENSSL_OP_DONT_INSERT_EMPTY_FRAGMENTS != 0 else { return false }
        unsafe _ = SSL_CTX_clear_options(context, COPENSSL_OP_DONT_INSERT_EMPTY_FRAGMENTS)
        return true
    }
}

extension EasyHandle {
    /// Marks the TLS contexts of connections to proxies, for detection by ``Transfer/takeProxyMark(from:)``.
    func markProxies() throws(CurlFailure) {
        try set(CURLOPT_PROXY_SSL_OPTIONS, Int(CURLSSLOPT_ALLOW_BEAST))
    }

    /// Sets the TLS options that represent the security settings. libcurl does not compare callbacks when it searches
    /// for a connection or session to reuse. Therefore the directory of authorities, which it compares and which is
    /// otherwise unused, is set to the key of the settings.
    func apply(_ security: ConnectionSecurity, resumesSessions: Bool) throws(CurlFailure) {
        try set(CURLOPT_CAPATH, security.key)
        // libcurl checks the name as well, by its own rules.
        let policy = security.policy
        if !policy.validatesDomainName || policy.evaluator != nil { try set(CURLOPT_SSL_VERIFYHOST, 0) }
        // A resumed session presents no certificates, neither the server's nor the one that would be chosen.
        if !resumesSessions || !security.isPlain || security.identityChooser != nil {
            try set(CURLOPT_SSL_SESSIONID_CACHE, false)
        }
    }
}
