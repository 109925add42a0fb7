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
            try applyAll(for: exchange)
        } catch let failure as CurlFailure {
            throw failure.transportError
        } catch let error as TransportError {
            throw error
        } catch {
            throw TransportError(.internalInconsistency("\(error)"))
        }
    }

    private func applyAll(for exchange: Exchange) throws {
        let options = exchange.sharedOptions
        if let timeout = options.value.expectContinueTimeout {
            try set(CURLOPT_EXPECT_100_TIMEOUT_MS, timeout.wholeMilliseconds)
        }
        if exchange.mayUseTLS { try apply(options.value.tls, mayUseTLSProxy: exchange.mayUseTLSProxy) }
        try apply(options.value.proxy, for: exchange)
        try apply(options.value.connection)
    }

    /// Sets the TLS options, which apply to the server and to a proxy over TLS alike. libcurl chooses the trusted
    /// authorities for servers only if it does not give access to its TLS contexts; see ``apply(_:_:)-(ConnectionSecurity,_)``.
    private func apply(_ tls: TLSOptions, mayUseTLSProxy: Bool) throws {
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
        if mayUseTLSProxy { try apply(CurlRoots(tls.trustRoots), to: .proxies) }
        guard CurlLibrary.usesOpenSSL else { return try apply(CurlRoots(tls.trustRoots), to: .servers) }
        try set(CURLOPT_CAINFO, nil)
        if CurlDefects.current.contains(.restoredRoots) {
            // libcurl would read its file of all authorities for each connection, or fail because there is none.
            try set(CURLOPT_CAINFO_BLOB, blob: CurlRoots.noAuthority)
        }
    }

    private func apply(_ roots: CurlRoots, to party: CurlRoots.Party) throws(CurlFailure) {
        let (file, directory, blob) = party.options
        try set(file, roots.file)
        try set(directory, roots.directory)
        if let bytes = roots.bytes { try set(blob, blob: bytes) }
    }

    private func apply(_ policy: ProxyPolicy, for exchange: Exchange) throws {
        // Also for exceptions that libcurl itself does not understand; see CURLOPT_NOPROXY(3).
        guard exchange.mayUseProxy else { return try useNoProxy() }
        switch policy {
        case .none: break
        case .environment:
            guard exchange.authentication?.proxy != nil,
                let address = policy.addressWithoutUser(
                    isSecure: exchange.isSecure, environment: ProxyPolicy.variable)
            else { break }
            try set(CURLOPT_PROXY, address)
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
                try setProxyCredential(credential, by: credential.schemes ?? [.basic], of: exchange)
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
        if let interface = connection.localInterface {
            // From 8.9 to 8.11, libcurl does not know an address after the prefix.
            let host = interface.hasPrefix("host!") ? String(interface.dropFirst("host!".count)) : interface
            try set(CURLOPT_INTERFACE, HostName(host).isAddress ? host : interface)
        }
        if let url = connection.dnsOverHTTPS { try set(CURLOPT_DOH_URL, url.absoluteString) }
        if let probe = connection.tcpKeepAlive.map({ max(1, $0.wholeSeconds) }) {
            try set(CURLOPT_TCP_KEEPALIVE, true)
            try set(CURLOPT_TCP_KEEPIDLE, probe)
            try set(CURLOPT_TCP_KEEPINTVL, probe)
        }
    }
}

/// Trusted authorities as libcurl reads them, for proxies and where it verifies servers. Both a directory and either a file
/// or bytes are set: from 8.21 on, what is unset has the value of libcurl's build (since 5df33efab4).
struct CurlRoots {
    var file: String?
    var directory = Self.emptyDirectory
    /// Certificates in PEM, with which libcurl reads no file.
    var bytes: Data?

    /// A directory that all Linux systems have and that contains no files.
    private static let emptyDirectory = "/proc/self/task"

    init(_ roots: TrustRoots) {
        let system = SystemRoots.current
        switch roots {
        case .system:
            (file, directory) = (system.file, system.directory ?? Self.emptyDirectory)
            if system.file == nil { bytes = Self.noAuthority }
        case .file(let path):
            // libcurl reads a file for new connections only.
            if let found = Self.text(ofCertificateAt: path) { bytes = found } else { file = path }
        case .pem(let data):
            bytes = Self.text(of: data)
        case .systemAnd(let data):
            bytes = Self.text(of: data)
            if let found = system.directory {
                directory = found
            } else if let file = system.file, let all = try? FileOrData.file(file).read() {
                bytes?.append(all)
            }
        }
    }

    /// Returns certificates in PEM, which libcurl requires.
    private static func text(of bytes: Data) -> Data { isCertificate(bytes) ? PEM.text(of: [bytes]) : bytes }

    /// Returns the text of a file that is a certificate in DER; otherwise `nil`.
    private static func text(ofCertificateAt path: String) -> Data? {
        guard let file = try? FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK) else { return nil }
        var first = Data(count: 2)
        var buffer = first.mutableBytes
        guard (try? file.read(into: &buffer)) == 2, isCertificate(first) else { return nil }
        return (try? FileOrData.file(path).read()).map(text(of:))
    }

    /// Whether bytes begin as a sequence of ASN.1 of 128 bytes or more does.
    private static func isCertificate(_ bytes: Data) -> Bool {
        bytes.first == 0x30 && bytes.dropFirst().first.map { $0 > 0x80 } == true
    }

    /// Whom roots are for, with the options that hold them.
    enum Party {
        case servers, proxies

        var options: (file: CURLoption, directory: CURLoption, blob: CURLoption) {
            switch self {
            case .servers: (CURLOPT_CAINFO, CURLOPT_CAPATH, CURLOPT_CAINFO_BLOB)
            case .proxies: (CURLOPT_PROXY_CAINFO, CURLOPT_PROXY_CAPATH, CURLOPT_PROXY_CAINFO_BLOB)
            }
        }
    }

    /// A certificate that is no authority, and whose key was thrown away.
    static let noAuthority = Data(
        """
        -----BEGIN CERTIFICATE-----
        MIIBSzCB8qADAgECAgEBMAoGCCqGSM49BAMCMBcxFTATBgNVBAMMDE5vIGF1dGhv
        cml0eTAeFw0yNjExMjcyMjA5MTFaFw0yNjExMjgyMjA5MTFaMBcxFTATBgNVBAMM
        DE5vIGF1dGhvcml0eTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABK9dEYXuZwug
        XXOYZHBvbXNbnRm5grX3uz/vy9baGxDo0VE8nSFSND89V2aiTUJ8W1pmDrVai3g0
        te98mVm4CI+jLzAtMAwGA1UdEwEB/wQCMAAwHQYDVR0OBBYEFEn0Mjhr58aF4gkJ
        FBboWobunLhoMAoGCCqGSM49BAMCA0gAMEUCIQCQiSFOCR+sHO85UIFU7G8t6KTQ
        4Pcv0bYdb4a2yomHigIgDdDx31lzKT7zdCNdZabG13U9lansmNIve6qHqTzH/Fo=
        -----END CERTIFICATE-----

        """.utf8)
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
