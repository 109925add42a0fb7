// SPDX-License-Identifier: MIT

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
    /// | `httpShouldSetCookies`, `httpCookieAcceptPolicy` | whether cookies are handled, in the session's own store |
    /// | `connectionProxyDictionary` | the proxy; by default the proxy from the environment variables |
    init(_ configuration: URLSessionConfiguration) {
        self.init()
        timeouts.idle = configuration.timeoutIntervalForRequest.limit
        timeouts.total =
            configuration.timeoutIntervalForResource < 604_800 ? configuration.timeoutIntervalForResource.limit : nil
        maximumConnectionsPerHost = configuration.httpMaximumConnectionsPerHost
        cachePolicy = CachePolicy(configuration.requestCachePolicy)
        handlesCookies = configuration.httpShouldSetCookies && configuration.httpCookieAcceptPolicy != .never
        for (name, value) in configuration.httpAdditionalHeaders ?? [:] {
            guard let name = HTTPField.Name("\(name)") else { continue }
            headers[name] = "\(value)"
        }
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
        case .useProtocolCachePolicy: self = .useProtocol
        case .returnCacheDataElseLoad: self = .returnCacheDataElseLoad
        case .returnCacheDataDontLoad: self = .returnCacheDataDontLoad
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
