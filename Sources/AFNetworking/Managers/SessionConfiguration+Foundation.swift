// SPDX-License-Identifier: MIT

import AsyncNetworking
import HTTPTypes

extension SessionConfiguration {
    /// Takes over what Foundation's configuration says.
    ///
    /// | Foundation | here |
    /// |---|---|
    /// | `timeoutIntervalForRequest` | the idle limit |
    /// | `timeoutIntervalForResource` | the limit on the total; none for a week, which is Foundation's default |
    /// | `httpAdditionalHeaders` | header fields for every request that lacks them |
    /// | `httpMaximumConnectionsPerHost` | the limit of the pool |
    /// | `requestCachePolicy` | the cache policy |
    /// | `httpShouldSetCookies`, `httpCookieAcceptPolicy` | whether cookies are handled, in a jar of the session's own |
    /// | `connectionProxyDictionary` | the proxy; that of the environment where there is none |
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
    /// The limit of so many seconds; none for zero and less, and for more than 30 years.
    var limit: Duration? { self > 0 && self < 1e9 ? .seconds(self) : nil }
}

extension CachePolicy {
    /// The policy that says the same.
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
    /// The proxy of a dictionary of CFNetwork's: for HTTPS, for HTTP, or SOCKS.
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
