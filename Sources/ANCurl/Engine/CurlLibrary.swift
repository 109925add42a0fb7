// SPDX-License-Identifier: MIT

public import ANHTTP
package import CCurl
import COpenSSL
import FoundationEssentials

/// The libcurl with which the program runs, which may differ from the version it was compiled against.
public struct CurlLibrary: Sendable {
    /// The version, such as `7.88.1`.
    public let version: String
    /// The TLS library, such as `OpenSSL/3.0.17`; empty if libcurl was built without TLS.
    public let tlsLibrary: String
    /// Whether HTTP/2 is supported, and whether exchanges share its connections.
    package let http2: HTTP2Sharing
    /// The defects that the engine avoids.
    package let defects: CurlDefects
    /// Whether HTTP/3 is supported and can be used, which it cannot in libcurl 8.15. Otherwise
    /// ``ANHTTP/HTTPVersionPolicy/http3`` and ``ANHTTP/HTTPVersionPolicy/http3Only`` fail with
    /// ``ANHTTP/TransportError/Reason/unsupported(_:)``.
    public let hasHTTP3: Bool
    /// Whether HTTP/3 is supported, and implemented with ngtcp2. libcurl's experimental implementation with OpenSSL's
    /// own QUIC, as in Debian 13, can wait in vain for a response and does not cancel streams: it is used only if
    /// options ask for HTTP/3.
    package let usesNGTCP2: Bool
    /// Whether proxies over TLS are supported. Otherwise requests through one fail with
    /// ``ANHTTP/TransportError/Reason/unsupported(_:)``.
    public let hasHTTPSProxy: Bool
    /// Whether libcurl checks the Public Suffix List, so that no host can set cookies for a public suffix such as
    /// `co.uk`. Otherwise such cookies may be accepted.
    public let hasPublicSuffixList: Bool
    /// The authentication schemes with which libcurl can respond to challenges: Basic, Digest and, depending on its
    /// build, NTLM and Negotiate.
    public let authenticationSchemes: Set<AuthenticationScheme>
    /// The libcurl of this process, or ``ANHTTP/TransportError/Reason/internalInconsistency(_:)`` if it cannot be
    /// initialized. The first access initializes it, once. See curl_global_init(3) and curl_version_info(3).
    public static let current: Result<CurlLibrary, TransportError> = initialize()

    /// Whether exchanges can use alternative services: the TLS session tells which of QUIC and TCP has won a race.
    static let usesAlternativeRoutes = usesOpenSSL && (try? current.get().usesNGTCP2) == true

    /// Whether libcurl uses the same OpenSSL as this module.
    static let usesOpenSSL: Bool = {
        guard let library = try? current.get().tlsLibrary, let version = unsafe OpenSSL_version(OPENSSL_VERSION_STRING)
        else { return false }
        return isOpenSSL(library, version: unsafe String(cString: version))
    }()

    /// Whether `library`, in libcurl's notation, is OpenSSL in the given version, so that libcurl's TLS contexts can be
    /// passed to it.
    package static func isOpenSSL(_ library: String, version: String) -> Bool {
        library == "OpenSSL/\(version)"
    }

    private static func initialize() -> Result<CurlLibrary, TransportError> {
        // Otherwise exit(3) frees OpenSSL's tables while network threads still use them. Only the first initialization in
        // the process decides. See OPENSSL_init_crypto(3).
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        let code = curl_global_init(CCURL_GLOBAL_DEFAULT)
        guard code == CURLE_OK, let info = unsafe curl_version_info(CCURL_VERSION_NOW)?.pointee else {
            var context = FailureContext()
            context.curlCode = Int32(code.rawValue)
            return .failure(TransportError(.internalInconsistency("libcurl cannot be initialised."), context: context))
        }
        return unsafe .success(CurlLibrary(info))
    }

    /// The versions that give access to a TLS context in place of the session of QUIC (fixed by ba9ddb9357).
    private static let confusingSessions: Range<UInt32> = 0x08_0F_00..<0x08_10_00

    /// Creates the description of a libcurl. See curl_version_info(3).
    package init(_ info: curl_version_info_data) {
        func has(_ feature: Int32) -> Bool { unsafe info.features & feature != 0 }
        version = unsafe String(cString: info.version)
        tlsLibrary = unsafe info.ssl_version.map { unsafe String(cString: $0) } ?? ""
        http2 = unsafe HTTP2Sharing(version: info.version_num, hasHTTP2: has(CURL_VERSION_HTTP2))
        defects = unsafe CurlDefects(version: info.version_num)
        hasHTTP3 = unsafe has(CURL_VERSION_HTTP3) && !Self.confusingSessions.contains(info.version_num)
        usesNGTCP2 =
            unsafe hasHTTP3 && info.quic_version.map { unsafe String(cString: $0) }?.hasPrefix("ngtcp2/") == true
        hasHTTPSProxy = has(CURL_VERSION_HTTPS_PROXY)
        hasPublicSuffixList = has(CURL_VERSION_PSL)
        var schemes: Set<AuthenticationScheme> = [.basic, .digest]
        if has(CURL_VERSION_NTLM) { schemes.insert(.ntlm) }
        if has(CURL_VERSION_SPNEGO) { schemes.insert(.negotiate) }
        authenticationSchemes = schemes
    }
}

extension HostName {
    /// The ASCII form of an internationalized name, as libcurl converts it; `nil` if it cannot, or was built without IDN.
    /// See CURLU_PUNYCODE in curl_url_get(3).
    package var ascii: HostName? {
        guard let handle = unsafe curl_url() else { return nil }
        defer { unsafe curl_url_cleanup(handle) }
        var converted: UnsafeMutablePointer<CChar>?
        guard unsafe curl_url_set(handle, CURLUPART_HOST, text, 0) == CURLUE_OK,
            unsafe curl_url_get(handle, CURLUPART_HOST, &converted, UInt32(CURLU_PUNYCODE)) == CURLUE_OK,
            let bytes = unsafe converted
        else { return nil }
        defer { unsafe curl_free(bytes) }
        let name = HostName(unsafe String(cString: bytes))
        return name.isInternational ? nil : name
    }
}

extension URL {
    /// The URL with the ASCII form of an internationalized host, of which libcurl stores cookies.
    var withASCIIHost: URL {
        let name = HostName(self)
        guard name.isInternational, let ascii = name.ascii,
            var components = URLComponents(url: self, resolvingAgainstBaseURL: true)
        else { return self }
        components.host = ascii.text
        return components.url ?? self
    }
}

/// Defects of some versions of libcurl that the engine avoids while it runs.
package struct CurlDefects: OptionSet, Sendable {
    package let rawValue: UInt32

    /// Responses over HTTP/2 may be lost; see ``HTTP2Answers``.
    package static let lostAnswers = Self(rawValue: 1 << 0)
    /// The list of cookies for a request is read without the lock (be39ed19, fixed by c278c508e2): threads cannot share
    /// cookies.
    package static let unlockedCookies = Self(rawValue: 1 << 1)
    /// Failed name look-ups are cached without the lock (fixed by 1bf663e32f): threads cannot share addresses.
    package static let unlockedLookups = Self(rawValue: 1 << 2)
    /// Failed name look-ups are cached for 30 s also if the DNS server could not be asked (fixed by c3ae9ef822); see
    /// ``FailedLookups``.
    package static let keptLookups = Self(rawValue: 1 << 3)
    /// Header fields of more than 300 KiB are left out (fixed by 5bb7d7a4f2).
    package static let droppedFields = Self(rawValue: 1 << 4)
    /// Connections to a resolver (DNS over HTTPS) count as those of transfers, which wait for them (fixed by b049388d47).
    package static let countedResolvers = Self(rawValue: 1 << 5)
    /// An address of a name is tried only when one before it, of the same version of IP, has failed or taken half of the
    /// time that is left (`connect.c` until 8.16).
    package static let successiveAddresses = Self(rawValue: 1 << 6)
    /// The next address is not tried when one has failed, but at the next timer, whatever that is for (fixed by
    /// 01d8473b25).
    package static let forgottenAttempts = Self(rawValue: 1 << 7)
    /// The time for which a transfer waits for a connection counts towards its limit on connecting (`multi.c` since 8.8).
    package static let countedQueue = Self(rawValue: 1 << 8)

    /// An idle connection is used again without a look at its input within a second of the last look (since 2f1e94eaed),
    /// also if its server has closed it.
    package static let unreadInput = Self(rawValue: 1 << 9)

    /// An authority option that is unset is that of the build (since 5df33efab4).
    package static let restoredRoots = Self(rawValue: 1 << 10)

    /// The head counts towards the limit on the size of the field `Cookie`, of which the beginning is sent if no cookie fits,
    /// so that the next line becomes its value (fixed by d40e5cc9a3).
    package static let headBesideCookies = Self(rawValue: 1 << 11)

    /// A connection is used again after a response without a body that was followed by bytes (fixed by d7b6ce64ce): the rest
    /// of them would be read as the next response.
    package static let ignoredExcess = Self(rawValue: 1 << 12)

    /// CURLINFO_COOKIELIST(3) has the path of a cookie in the server's spelling, by which it is not compared (`cookie.c` until
    /// 8.17).
    package static let rawCookiePaths = Self(rawValue: 1 << 13)

    /// User names and passwords for proxies are percent-decoded (fixed by d5e83eb745).
    package static let decodedProxyCredentials = Self(rawValue: 1 << 14)

    /// A transfer whose source of the request's body has no bytes does not end with its connection (fixed in 8.5 only, and by
    /// 30de937bda).
    package static let unseenEnds = Self(rawValue: 1 << 15)

    /// The reset of an HTTP/2 stream that is left is not sent before the connection is used again (since 8.10; fixed by
    /// 1454aa17d6).
    package static let unsentResets = Self(rawValue: 1 << 16)

    /// A response that is paused again as soon as it is resumed is lost (fixed by 7e91f24c73).
    package static let fragilePauses = Self(rawValue: 1 << 17)

    /// The directory of authorities is not compared when a connection is searched for, unless the build has one (fixed by
    /// f55974c139).
    package static let ignoredDirectory = Self(rawValue: 1 << 18)

    /// A socket whose HTTP/2 responses are paused is read from (since 442943fb8e, fixed by 5e4e62962c): the loop would not
    /// sleep.
    package static let watchedPauses = Self(rawValue: 1 << 19)

    /// A socket whose HTTP/1.1 response is paused is read from, up to 64 MB, after which the transfer fails, or to the end of
    /// the connection, at which what was read is lost (fixed by a0f94800d5).
    package static let readPauses = Self(rawValue: 1 << 20)

    /// The timer expires at once as long as an HTTP/2 response is paused (fixed by 3841569ec8).
    package static let hastyPauses = Self(rawValue: 1 << 21)

    /// The descriptor that wakes the loop after the look-up of a name is not read (9bc8b078eb, fixed by 2a2104f3cf).
    package static let unreadWakeups = Self(rawValue: 1 << 22)

    /// A socket whose HTTP/1.1 response is paused is read from whenever the request's body is sent (`transfer.c` until 8.19),
    /// until 8.13 up to 64 MB, after which the transfer fails.
    package static let sendingReads = Self(rawValue: 1 << 23)

    /// The bytes that were buffered during a pause are delivered not when it ends, but by the next timer (`easy.c` in 8.8).
    package static let latePauses = Self(rawValue: 1 << 24)

    /// The size in bytes of the lines that are sent by all versions.
    static let longestLine = 300 << 10

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The defects of the linked version; none if libcurl cannot be used.
    static let current = (try? CurlLibrary.current.get().defects) ?? []

    /// Creates the set of the defects of a version, in the form of curl_version_info(3).
    package init(version: UInt32) {
        self = Self.table.reduce(into: []) { set, row in if row.versions.contains(version) { set.insert(row.defect) } }
    }

    private static let table: [(defect: Self, versions: Range<UInt32>)] = [
        (.lostAnswers, 0..<0x08_0E_00), (.unlockedCookies, 0x08_0B_00..<0x08_10_00),
        (.unlockedLookups, 0x08_10_00..<0x08_14_00), (.keptLookups, 0x08_10_00..<0x08_16_00),
        (.droppedFields, 0x08_0D_00..<0x08_16_00), (.countedResolvers, 0..<0x08_09_00),
        (.successiveAddresses, 0..<0x08_10_00), (.forgottenAttempts, 0..<0x08_04_00),
        (.unreadInput, 0x08_16_00..<UInt32.max), (.restoredRoots, 0x08_15_00..<UInt32.max),
        (.countedQueue, 0x08_08_00..<0x08_10_00), (.headBesideCookies, 0..<0x08_02_00),
        (.ignoredExcess, 0..<0x08_06_00), (.rawCookiePaths, 0..<0x08_12_00),
        (.decodedProxyCredentials, 0..<0x08_08_00), (.unseenEnds, 0..<0x08_05_00),
        (.unseenEnds, 0x08_06_00..<0x08_09_00),
        (.unsentResets, 0x08_0A_00..<0x08_0F_00), (.fragilePauses, 0x08_10_00..<0x08_11_00),
        (.ignoredDirectory, 0x08_11_00..<0x08_12_00), (.watchedPauses, 0x08_11_00..<0x08_15_00),
        (.readPauses, 0x08_05_00..<0x08_06_00), (.hastyPauses, 0x08_01_00..<0x08_09_00),
        (.unreadWakeups, 0x08_14_00..<0x08_15_00), (.sendingReads, 0x08_09_00..<0x08_14_00),
        (.latePauses, 0x08_08_00..<0x08_09_00),
    ]

    /// Whether a connection can be used again only if no input is waiting, of which its end may be a part.
    ///
    /// - Parameters:
    ///   - isWatched: Whether libcurl waits for input on it, as it does for running exchanges.
    ///   - isRepeatable: Whether the request may be sent again if the connection has ended.
    package func forbidInput(isWatched: Bool, isRepeatable: Bool) -> Bool {
        contains(.unreadInput) && !isWatched && !isRepeatable
    }
}

/// The servers whose names were not found the last time, for versions of libcurl with ``CurlDefects/keptLookups``.
/// Requests to them do not use cached addresses.
package struct FailedLookups: Sendable {
    private var servers: Set<String> = []

    /// Creates an empty list.
    package init() {}

    /// Returns whether the last look-up for a server failed.
    package func contains(_ server: String) -> Bool { servers.contains(server) }

    /// Notes how a look-up for a server ended.
    package mutating func note(_ server: String, hasFailed: Bool) {
        guard hasFailed else {
            servers.remove(server)
            return
        }
        // Cached failures expire anyway.
        if servers.count == Self.maximumCount { servers.removeAll() }
        servers.insert(server)
    }

    package static let maximumCount = 1000
}
