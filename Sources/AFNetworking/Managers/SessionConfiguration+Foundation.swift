// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import HTTPTypes

extension SessionConfiguration {
    /// Creates a configuration from Foundation's.
    ///
    /// | Foundation | here |
    /// |---|---|
    /// | `timeoutIntervalForRequest` | the idle timeout |
    /// | `timeoutIntervalForResource` | the total timeout; none for a week or more, which is Foundation's default |
    /// | `httpAdditionalHeaders` | header fields for requests that lack them |
    /// | `httpMaximumConnectionsPerHost` | the maximum number of connections per host |
    /// | `requestCachePolicy` | the cache policy |
    /// | `urlCache` | its response cache of the same capacities; none for `URLCache.shared` |
    /// | `httpShouldSetCookies`, `httpCookieAcceptPolicy`, `httpCookieStorage` | whether cookies are handled |
    /// | `connectionProxyDictionary` | the proxy; by default the proxy from the environment variables |
    init(_ configuration: URLSessionConfiguration) {
        self.init()
        transfer.timeouts.idle = configuration.timeoutIntervalForRequest.limit
        transfer.timeouts.total =
            configuration.timeoutIntervalForResource < 604_800 ? configuration.timeoutIntervalForResource.limit : nil
        connectionLimits.maximumConnectionsPerHost = configuration.httpMaximumConnectionsPerHost
        // Blocks and overrides that decide during a handshake are called one after the other.
        connectionLimits.eventLoops = 1
        cachePolicy = CachePolicy(configuration.requestCachePolicy)
        if let original = configuration.urlCache, original !== URLCache.shared { cache = original.responseCache }
        transfer.handlesCookies =
            configuration.httpShouldSetCookies && configuration.httpCookieAcceptPolicy != .never
            && configuration.httpCookieStorage != nil
        headers = HTTPFields(valid: configuration.httpAdditionalHeaders ?? [:])
        if let proxy = configuration.connectionProxyDictionary.flatMap(Proxy.init) { self.proxy = .proxy(proxy) }
    }
}

extension TimeInterval {
    /// The duration of this number of seconds; `nil` for zero, negative numbers and more than 30 years (10⁹ seconds).
    var limit: Duration? { self > 0 && self < 1e9 ? .seconds(self) : nil }
}

extension CachePolicy {
    /// Creates the cache policy that corresponds to Foundation's.
    init(_ policy: NSURLRequest.CachePolicy) {
        switch policy {
        case .useProtocolCachePolicy: self = .protocolPolicy
        case .returnCacheDataElseLoad: self = .returnCacheElseLoad
        case .returnCacheDataDontLoad: self = .returnCacheDontLoad
        case .reloadRevalidatingCacheData: self = .revalidate
        default: self = .reload
        }
    }
}

extension Proxy {
    /// Creates the proxy of a CFNetwork dictionary, in this order: the proxy for HTTPS, for HTTP, a SOCKS proxy.
    /// Returns `nil` if it has none that is enabled.
    fileprivate init?(_ dictionary: [AnyHashable: Any]) {
        for (prefix, kind) in [("HTTPS", Kind.http), ("HTTP", .http), ("SOCKS", .socks5)] {
            guard let host = dictionary["\(prefix)Proxy"] as? String,
                let port = dictionary["\(prefix)Port"].flatMap({ Int("\($0)") }),
                dictionary["\(prefix)Enable"].map({ "\($0)" != "0" && "\($0)" != "false" }) ?? true
            else { continue }
            self.init(kind, host: host, port: port)
            return
        }
        return nil
    }
}

/// The archived form of a configuration: the settings that this module uses. On Linux `URLSessionConfiguration` is not
/// an `NSCoding` class.
struct ArchivedConfiguration: Codable {
    private let timeoutForRequest: TimeInterval
    private let timeoutForResource: TimeInterval
    private let headers: [String: String]?
    private let maximumConnectionsPerHost: Int
    private let cachePolicy: UInt
    private let setsCookies: Bool
    private let cookieAcceptPolicy: UInt
    private let cookieStorage: CookieStorageKind
    private let proxies: [String: String]?

    /// The kind of a cookie storage, whose cookies are not archived.
    private enum CookieStorageKind: String, Codable {
        /// `HTTPCookieStorage.shared`.
        case shared
        /// Another storage, which becomes an empty one.
        case separate
        /// No storage: cookies are not handled.
        case absent
    }

    init(_ configuration: URLSessionConfiguration) {
        timeoutForRequest = configuration.timeoutIntervalForRequest
        timeoutForResource = configuration.timeoutIntervalForResource
        headers = configuration.httpAdditionalHeaders.map(Self.texts)
        maximumConnectionsPerHost = configuration.httpMaximumConnectionsPerHost
        cachePolicy = configuration.requestCachePolicy.rawValue
        setsCookies = configuration.httpShouldSetCookies
        cookieAcceptPolicy = configuration.httpCookieAcceptPolicy.rawValue
        cookieStorage =
            configuration.httpCookieStorage.map { $0 === HTTPCookieStorage.shared ? .shared : .separate } ?? .absent
        proxies = configuration.connectionProxyDictionary.map(Self.texts)
    }

    /// A configuration with the archived settings and defaults for the others.
    var configuration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.timeoutIntervalForRequest = timeoutForRequest
        configuration.timeoutIntervalForResource = timeoutForResource
        configuration.httpAdditionalHeaders = headers
        configuration.httpMaximumConnectionsPerHost = maximumConnectionsPerHost
        if let policy = NSURLRequest.CachePolicy(rawValue: cachePolicy) { configuration.requestCachePolicy = policy }
        configuration.httpShouldSetCookies = setsCookies
        if let policy = HTTPCookie.AcceptPolicy(rawValue: cookieAcceptPolicy) {
            configuration.httpCookieAcceptPolicy = policy
        }
        switch cookieStorage {
        case .shared: configuration.httpCookieStorage = .shared
        case .separate: configuration.httpCookieStorage = URLSessionConfiguration.ephemeral.httpCookieStorage
        case .absent: configuration.httpCookieStorage = nil
        }
        configuration.connectionProxyDictionary = proxies
        return configuration
    }

    private static func texts(_ dictionary: [AnyHashable: Any]) -> [String: String] {
        Dictionary(dictionary.map { ("\($0.key.base)", "\($0.value)") }) { first, _ in first }
    }
}

// A manager on an existing core session is created by the designated initializer, which takes a configuration, so that
// an override in a subclass is called. The configuration carries the session.

extension URLSessionConfiguration {
    /// Returns a configuration that carries a core session, with the header fields of another configuration.
    static func sharing(
        _ session: SessionManager, adding other: URLSessionConfiguration? = nil
    ) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        var fields = other?.httpAdditionalHeaders ?? [:]
        fields[SharedSession()] = session
        configuration.httpAdditionalHeaders = fields
        return configuration
    }

    /// Removes the core session that the configuration carries.
    func removeSharedSession() {
        httpAdditionalHeaders?[SharedSession()] = nil
        if httpAdditionalHeaders?.isEmpty == true { httpAdditionalHeaders = nil }
    }

    /// The core session that the configuration carries; `nil` if it carries no session.
    var sharedSession: SessionManager? {
        httpAdditionalHeaders?[SharedSession()] as? SessionManager
    }
}

/// The key of the core session in `httpAdditionalHeaders`. It is not a string and so is no header field name.
private struct SharedSession: Hashable {}

extension URLCache {
    /// The response cache of the same capacities that managers use in place of this cache. It exists as long as this
    /// object, and so survives the sessions of a manager.
    var responseCache: ResponseCache {
        Self.responseCaches.withLock { caches in
            let key = ObjectIdentifier(self)
            caches = caches.filter { $0.value.original.value.object != nil }
            if let known = caches[key] { return known.cache }
            let made: ResponseCache =
                diskCapacity > 0
                ? .makeStandard(capacity: Int64(diskCapacity), memory: memoryCapacity) : .memory(memoryCapacity)
            caches[key] = (UncheckedSendable(Weak(object: self)), made)
            return made
        }
    }

    private static let responseCaches = Lock<
        [ObjectIdentifier: (original: UncheckedSendable<Weak<URLCache>>, cache: ResponseCache)]
    >([:])
}
