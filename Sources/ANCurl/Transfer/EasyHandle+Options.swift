// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials
import Glibc

// The mapping of ``TransferOptions`` to libcurl's options, each set in one place. The handle is new, so an option is
// set only if its value differs from libcurl's default.

extension EasyHandle {
    /// Sets the options that are the same for every exchange.
    func applyConstants() throws(CurlFailure) {
        try set(CURLOPT_NOSIGNAL, true)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
        // Its versions differ in what they take for dot segments: URLs have none.
        try set(CURLOPT_PATH_AS_IS, true)
        // Time limits are enforced on the loop, which knows the phases and pauses; libcurl's default would be 300 s.
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(Int32.max))
        // Without this, ending a transfer during its name lookup waits for getaddrinfo(3), on the loop. Since 8.20, an
        // option of the multi handle has this effect.
        try set(CURLOPT_QUICK_EXIT, true)
        // libcurl would also offer GSS-API (RFC 1961): it would give a ticket of the system's user to any proxy that
        // selects it, and wait for the proxy's answers on the loop. See CURLOPT_SOCKS5_AUTH(3).
        try set(CURLOPT_SOCKS5_AUTH, CCURL_AUTH_BASIC)
    }

    /// Sets the ages above which connections are not reused, which libcurl counts in whole seconds.
    func apply(_ limits: ConnectionLimits) throws(CurlFailure) {
        // Recent versions of libcurl (8.23) set no limit for 0.
        try set(CURLOPT_MAXAGE_CONN, max(1, limits.maximumIdleAge.wholeSeconds))
        // The default is no limit up to 8.16, and a day in later versions.
        try set(CURLOPT_MAXLIFETIME_CONN, limits.maximumAge.map { max(1, $0.wholeSeconds) } ?? 0)
    }

    /// Sets the options of an exchange that ``TransferOptions`` gives, with the value of CURLOPT_HTTP_VERSION(3).
    func applyOptions(of exchange: Exchange, curlVersion: Int) throws(TransportError) {
        do {
            try set(CURLOPT_HTTP_VERSION, curlVersion)
            try applyAll(exchange.sharedOptions, mayUseTLS: exchange.mayUseTLS, mayUseProxy: exchange.mayUseProxy)
        } catch let failure as CurlFailure {
            throw failure.transportError
        } catch let error as TransportError {
            throw error
        } catch {
            throw TransportError(.internalInconsistency("\(error)"))
        }
    }

    private func applyAll(_ options: SharedTransferOptions, mayUseTLS: Bool, mayUseProxy: Bool) throws {
        if let timeout = options.value.expectContinueTimeout {
            try set(CURLOPT_EXPECT_100_TIMEOUT_MS, timeout.wholeMilliseconds)
        }
        if mayUseTLS { try apply(options.value.tls, mayUseProxy) }
        try apply(options.value.proxy, mayUseProxy)
        try apply(options.value.connection)
    }

    /// Sets the TLS options, which apply to the server and to a proxy over TLS alike. libcurl chooses the trusted
    /// authorities for servers only if it does not give access to its TLS contexts; see ``apply(_:resumesSessions:)``.
    private func apply(_ tls: TLSOptions, _ mayUseProxy: Bool) throws(CurlFailure) {
        try set(CURLOPT_SSLVERSION, tls.curlVersions)
        try set(CURLOPT_PROXY_SSLVERSION, tls.curlVersions)
        if let ciphers = tls.cipherList {
            for option in [CURLOPT_SSL_CIPHER_LIST, CURLOPT_PROXY_SSL_CIPHER_LIST] { try set(option, ciphers) }
        }
        if let ciphers = tls.cipherSuites {
            for option in [CURLOPT_TLS13_CIPHERS, CURLOPT_PROXY_TLS13_CIPHERS] { try set(option, ciphers) }
        }
        if let curves = tls.curves { try set(CURLOPT_SSL_EC_CURVES, curves) }
        if !tls.resumesSessions { try set(CURLOPT_SSL_SESSIONID_CACHE, false) }
        try apply(tls.trustRoots, mayUseProxy)
    }

    private func apply(_ roots: TrustRoots, _ mayUseProxy: Bool) throws(CurlFailure) {
        var file: String?
        var directory: String?
        var blob: Data?
        switch roots {
        case .system: (file, directory) = (SystemRoots.current.file, SystemRoots.current.directory)
        case .file(let path): file = path
        case .pem(let bytes): blob = bytes
        // With certificates in memory, libcurl reads no certificate file.
        case .systemAnd(let bytes): (directory, blob) = (SystemRoots.current.directory, bytes)
        }
        // A file is read again for new connections, also if libcurl has read it before.
        // Without this option, it does so anyway.
        if case .file = roots { try? set(CURLOPT_CA_CACHE_TIMEOUT, 0) }
        if mayUseProxy {
            try set(CURLOPT_PROXY_CAINFO, file)
            try set(CURLOPT_PROXY_CAPATH, directory)
            if let blob { try set(CURLOPT_PROXY_CAINFO_BLOB, blob: blob) }
        }
        let isLibcurls = !CurlLibrary.usesOpenSSL
        try set(CURLOPT_CAINFO, isLibcurls ? file : nil)
        try set(CURLOPT_CAPATH, isLibcurls ? directory : nil)
        if isLibcurls, let blob { try set(CURLOPT_CAINFO_BLOB, blob: blob) }
    }

    private func apply(_ policy: ProxyPolicy, _ mayUseProxy: Bool) throws {
        // Also for exceptions that libcurl itself does not understand; see CURLOPT_NOPROXY(3).
        guard mayUseProxy else { return try useNoProxy() }
        switch policy {
        case .environment, .none: break
        case .proxy(let proxy):
            if proxy.host.unicodeScalars.contains(where: { "/?#@\\ ".unicodeScalars.contains($0) })
                || proxy.host.hasControlCharacters
            {
                throw TransportError(.invalidRequest(.option("The host of the proxy is not a name or an address.")))
            }
            if proxy.kind == .https, try !CurlLibrary.current.get().hasHTTPSProxy {
                throw TransportError(.unsupported(.httpsProxy))
            }
            let host = proxy.host.contains(":") ? "[\(proxy.host)]" : proxy.host
            try set(CURLOPT_PROXY, "\(proxy.kind.rawValue)://\(host):\(proxy.port)")
            if let credential = proxy.credential {
                try credential.check(for: "Proxy-Authorization")
                try set(CURLOPT_PROXYUSERNAME, credential.user)
                try set(CURLOPT_PROXYPASSWORD, credential.password)
                try set(CURLOPT_PROXYAUTH, credential.curlProxyBits)
            }
            try set(CURLOPT_NOPROXY, "")
        }
    }

    /// Unlike `NULL`, an empty string keeps libcurl from reading the environment. See CURLOPT_PROXY(3).
    private func useNoProxy() throws(CurlFailure) {
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_NOPROXY, "")
    }

    private func apply(_ connection: ConnectionOptions) throws {
        switch connection.ipVersion {
        case .any: break
        case .v4: try set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
        case .v6: try set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
        }
        if let path = connection.unixSocketPath {
            // The size of `sun_path`, which includes a NUL. See unix(7).
            guard path.utf8.count < 108 else {
                var context = FailureContext()
                context.errno = ENAMETOOLONG
                let reason = "The path of the Unix-domain socket is longer than 107 bytes."
                throw TransportError(.invalidRequest(.option(reason)), context: context)
            }
            try set(CURLOPT_UNIX_SOCKET_PATH, path)
        }
        if let interface = connection.localInterface { try set(CURLOPT_INTERFACE, interface) }
        if let url = connection.dnsOverHTTPS { try set(CURLOPT_DOH_URL, url.absoluteString) }
        if let probe = connection.tcpKeepAlive.map({ max(1, $0.wholeSeconds) }) {
            try set(CURLOPT_TCP_KEEPALIVE, true)
            try set(CURLOPT_TCP_KEEPIDLE, probe)
            try set(CURLOPT_TCP_KEEPINTVL, probe)
        }
    }
}

extension TLSOptions {
    /// The value of CURLOPT_SSLVERSION(3).
    package var curlVersions: Int {
        // The default as an explicit value: libcurl's own handle for DNS over HTTPS inherits the options since 8.17, but
        // not this one, so that requests do not reuse its connections, to which their policies were not applied. Not
        // `CURL_SSLVERSION_MAX_DEFAULT`, with which libcurl 8.12 and later ignore the cipher suites of TLS 1.3.
        minimumVersion.curlNumber | (maximumVersion ?? .v1_3).curlNumber << 16
    }
}

extension TLSVersion {
    fileprivate var curlNumber: Int {
        switch self {
        case .v1_0: Int(CURL_SSLVERSION_TLSv1_0)
        case .v1_1: Int(CURL_SSLVERSION_TLSv1_1)
        case .v1_2: Int(CURL_SSLVERSION_TLSv1_2)
        case .v1_3: Int(CURL_SSLVERSION_TLSv1_3)
        }
    }
}

extension Duration {
    /// The duration in whole milliseconds, rounded up so that a short one does not become 0; clamped to libcurl's
    /// maximum.
    var wholeMilliseconds: Int {
        let nanoseconds = clampedNanoseconds
        guard nanoseconds > 0 else { return 0 }
        return Int(min((nanoseconds - 1) / 1_000_000 + 1, Int64(Int32.max)))
    }

    /// The duration in whole seconds, rounded up.
    var wholeSeconds: Int {
        wholeMilliseconds / 1000 + (wholeMilliseconds % 1000 > 0 ? 1 : 0)
    }
}
