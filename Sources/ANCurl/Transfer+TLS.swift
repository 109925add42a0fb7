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
        guard unsafe !Self.takeProxyMark(from: context), let exchange else { return CURLE_OK }
        do throws(TransportError) {
            let handshake: Handshake?
            if unsafe handle == self.handle.raw {
                handshake = try currentSecurity(of: exchange).map {
                    Handshake($0, host: HostName(exchange.request.url), transfer: self)
                }
            } else {
                // libcurl made a handle of its own, of this one's options.
                handshake = try resolverSecurity(of: exchange).map { security, url in
                    Handshake(security, host: HostName(url), transfer: self)
                }
            }
            guard let handshake else { return CURLE_SSL_CERTPROBLEM }
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

    /// What verifies a new connection; the authorities are read again when their file has changed.
    private func currentSecurity(of exchange: Exchange) throws(TransportError) -> ConnectionSecurity? {
        guard let applied = appliedSecurity, exchange.security == nil, !applied.isCurrent else {
            return appliedSecurity
        }
        return try loop.securities.plain(exchange.sharedOptions, for: exchange.request.url)
    }

    /// What verifies the resolver of DNS over HTTPS: it is not the server that a policy is for.
    private func resolverSecurity(of exchange: Exchange) throws(TransportError) -> (ConnectionSecurity, URL)? {
        guard let url = exchange.options.connection.dnsOverHTTPS else { return nil }
        return try loop.securities.plain(exchange.sharedOptions, for: url).map { ($0, url) }
    }

    /// Whether the context is that of a connection with a proxy. libcurl does not say; but ``EasyHandle/markProxies()`` has
    /// it set an option, without effect since TLS 1.1, for proxies only.
    private static func takeProxyMark(from context: OpaquePointer) -> Bool {
        guard unsafe SSL_CTX_get_options(context) & COPENSSL_OP_DONT_INSERT_EMPTY_FRAGMENTS != 0 else { return false }
        unsafe _ = SSL_CTX_clear_options(context, COPENSSL_OP_DONT_INSERT_EMPTY_FRAGMENTS)
        return true
    }

    /// Makes the handle's connections those of an exchange's security.
    func applySecurity(of exchange: Exchange) throws(TransportError) {
        let security: ConnectionSecurity?
        if let own = exchange.security {
            security = own
        } else if let plainSecurity {
            security = plainSecurity
        } else {
            security = try loop.securities.plain(exchange.sharedOptions, for: exchange.request.url)
            plainSecurity = security
        }
        guard let security, security !== appliedSecurity else { return }
        do throws(CurlFailure) {
            try handle.apply(security, resumesSessions: exchange.options.tls.resumesSessions)
        } catch {
            throw error.transportError
        }
        appliedSecurity = security
    }
}

extension EasyHandle {
    /// Makes contexts of connections with proxies known: ``Transfer/takeProxyMark(from:)`` looks for it.
    func markProxies() throws(CurlFailure) {
        try set(CURLOPT_SSL_OPTIONS, 0)
        try set(CURLOPT_PROXY_SSL_OPTIONS, Int(CURLSSLOPT_ALLOW_BEAST))
    }

    /// libcurl compares no callbacks when it looks for a connection, or a session, that was made with the same options. So
    /// one of the options that it compares, a folder of authorities which it has no use for, stands for the security.
    func apply(_ security: ConnectionSecurity, resumesSessions: Bool) throws(CurlFailure) {
        try set(CURLOPT_CAPATH, security.key)
        // A second look at the name, by libcurl's own rules.
        let policy = security.policy
        try set(CURLOPT_SSL_VERIFYHOST, policy.validatesDomainName && policy.evaluator == nil ? 2 : 0)
        // A resumed session shows no certificates.
        try set(CURLOPT_SSL_SESSIONID_CACHE, resumesSessions && security.isPlain)
    }
}
