// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials

// The translation of ``TransferOptions`` into libcurl's options, each set in one place. Every option is set in every
// case, so that a handle that served another request keeps nothing of it.

extension EasyHandle {
    /// Sets what holds for every exchange.
    func applyConstants() throws(CurlFailure) {
        try set(CURLOPT_NOSIGNAL, true)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_FOLLOWLOCATION, false)
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
        try set(CURLOPT_HTTP09_ALLOWED, false)
        // Limits on time are kept on the loop, which knows the phases and pauses; libcurl's own would be 300 s.
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(Int32.max))
        try set(CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10)
        // Ending a transfer during its name look-up would otherwise wait for getaddrinfo(3), on the loop.
        try set(CURLOPT_QUICK_EXIT, true)
        try set(CURLOPT_SSL_VERIFYPEER, true)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
    }

    /// Sets the ages at which connections are not used again, which libcurl counts in whole seconds.
    func apply(_ pool: ConnectionPool) throws(CurlFailure) {
        try set(CURLOPT_MAXAGE_CONN, pool.maximumIdleAge.wholeSeconds)
        try set(CURLOPT_MAXLIFETIME_CONN, pool.maximumAge.map { max(1, $0.wholeSeconds) } ?? 0)
    }

    /// Sets what ``TransferOptions`` say.
    func apply(_ options: TransferOptions) throws(TransportError) {
        do {
            try applyAll(options)
        } catch let failure as CurlFailure {
            throw failure.transportError
        } catch let error as TransportError {
            throw error
        } catch {
            throw .internalInconsistency("\(error)", TransferFacts())
        }
    }

    private func applyAll(_ options: TransferOptions) throws {
        try applyVersion(options.httpVersion)
        try set(CURLOPT_ACCEPT_ENCODING, options.decodesContent ? "" : nil)
        try set(CURLOPT_EXPECT_100_TIMEOUT_MS, (options.expectContinueTimeout ?? .seconds(1)).wholeMilliseconds)
        try apply(options.tls)
        try apply(options.proxy)
        try apply(options.connection)
    }

    private func applyVersion(_ policy: HTTPVersionPolicy) throws {
        let library = try CurlLibrary.current.get()
        switch policy {
        case .automatic:
            try set(CURLOPT_HTTP_VERSION, library.hasHTTP2 ? CCURL_HTTP_VERSION_2TLS : CCURL_HTTP_VERSION_1_1)
        case .http1:
            try set(CURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_1_1)
        case .http2PriorKnowledge:
            guard library.hasHTTP2 else { throw TransportError.unsupported(.http2) }
            try set(CURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
        case .http3:
            guard library.hasHTTP3 else { throw TransportError.unsupported(.http3) }
            try set(CURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_3ONLY)
        }
    }

    /// The rules hold for the server and for a proxy over TLS alike. Which authorities are trusted for servers is libcurl's
    /// matter only where it does not hand its contexts out; see ``apply(_:resumesSessions:)``.
    private func apply(_ tls: TLSOptions) throws(CurlFailure) {
        let versions = tls.minimumVersion.curlNumber | (tls.maximumVersion?.curlNumber ?? 0) << 16
        try set(CURLOPT_SSLVERSION, versions)
        try set(CURLOPT_PROXY_SSLVERSION, versions)
        try set(CURLOPT_SSL_ENABLE_ALPN, tls.negotiatesProtocol)
        for option in [CURLOPT_SSL_CIPHER_LIST, CURLOPT_PROXY_SSL_CIPHER_LIST] { try set(option, tls.cipherList) }
        for option in [CURLOPT_TLS13_CIPHERS, CURLOPT_PROXY_TLS13_CIPHERS] { try set(option, tls.cipherSuites) }
        try set(CURLOPT_SSL_EC_CURVES, tls.curves)
        var file: String?
        var folder: String?
        var blob: Data?
        switch tls.trustRoots {
        case .system: (file, folder) = (SystemRoots.current.file, SystemRoots.current.folder)
        case .file(let path): file = path
        case .pem(let bytes): blob = bytes
        // With certificates in memory libcurl reads no file.
        case .systemAnd(let bytes): (folder, blob) = (SystemRoots.current.folder, bytes)
        }
        try set(CURLOPT_PROXY_CAINFO, file)
        try set(CURLOPT_PROXY_CAPATH, folder)
        try set(CURLOPT_PROXY_CAINFO_BLOB, blob: blob)
        let isLibcurls = !CurlLibrary.usesOpenSSL
        try set(CURLOPT_CAINFO, isLibcurls ? file : nil)
        try set(CURLOPT_CAPATH, isLibcurls ? folder : nil)
        try set(CURLOPT_CAINFO_BLOB, blob: isLibcurls ? blob : nil)
        try set(CURLOPT_SSL_SESSIONID_CACHE, tls.resumesSessions)
    }

    private func apply(_ policy: ProxyPolicy) throws {
        var proxy: Proxy?
        switch policy {
        case .environment: try set(CURLOPT_PROXY, nil)
        // An empty string, unlike none at all, keeps libcurl from reading the environment. See CURLOPT_PROXY(3).
        case .none: try set(CURLOPT_PROXY, "")
        case .proxy(let chosen):
            if chosen.kind == .https, try !CurlLibrary.current.get().hasHTTPSProxy {
                throw TransportError.unsupported(.httpsProxy)
            }
            let host = chosen.host.contains(":") ? "[\(chosen.host)]" : chosen.host
            try set(CURLOPT_PROXY, "\(chosen.kind.rawValue)://\(host):\(chosen.port)")
            proxy = chosen
        }
        try set(CURLOPT_PROXYUSERNAME, proxy?.credential?.user)
        try set(CURLOPT_PROXYPASSWORD, proxy?.credential?.password)
        let credential = proxy?.credential ?? Credential(user: "", password: "")
        try set(CURLOPT_PROXYAUTH, credential.curlProxyBits)
        // libcurl knows `*` only where it stands alone. See CURLOPT_NOPROXY(3).
        try set(CURLOPT_NOPROXY, proxy.map { $0.bypass.contains("*") ? "*" : $0.bypass.joined(separator: ",") })
    }

    private func apply(_ connection: ConnectionOptions) throws(CurlFailure) {
        let version: Int =
            switch connection.ipVersion {
            case .any: Int(CURL_IPRESOLVE_WHATEVER)
            case .v4: Int(CURL_IPRESOLVE_V4)
            case .v6: Int(CURL_IPRESOLVE_V6)
            }
        try set(CURLOPT_IPRESOLVE, version)
        try set(CURLOPT_UNIX_SOCKET_PATH, connection.unixSocketPath)
        try set(CURLOPT_INTERFACE, connection.localInterface)
        try set(CURLOPT_DOH_URL, connection.dnsOverHTTPS?.absoluteString)
        let probe = connection.tcpKeepAlive.map { max(1, $0.wholeSeconds) }
        try set(CURLOPT_TCP_KEEPALIVE, probe != nil)
        try set(CURLOPT_TCP_KEEPIDLE, probe ?? 60)
        try set(CURLOPT_TCP_KEEPINTVL, probe ?? 60)
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
    /// Whole milliseconds, rounded up so that a short duration does not become none; at most what libcurl takes.
    var wholeMilliseconds: Int {
        let nanoseconds = clampedNanoseconds
        guard nanoseconds > 0 else { return 0 }
        return Int(min((nanoseconds - 1) / 1_000_000 + 1, Int64(Int32.max)))
    }

    /// Whole seconds, rounded up.
    var wholeSeconds: Int {
        wholeMilliseconds / 1000 + (wholeMilliseconds % 1000 > 0 ? 1 : 0)
    }
}
