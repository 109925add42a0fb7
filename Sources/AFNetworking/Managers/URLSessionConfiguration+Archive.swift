// SPDX-License-Identifier: MIT

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
    private let proxies: [String: String]?

    init(_ configuration: URLSessionConfiguration) {
        timeoutForRequest = configuration.timeoutIntervalForRequest
        timeoutForResource = configuration.timeoutIntervalForResource
        headers = configuration.httpAdditionalHeaders.map(Self.texts)
        maximumConnectionsPerHost = configuration.httpMaximumConnectionsPerHost
        cachePolicy = configuration.requestCachePolicy.rawValue
        setsCookies = configuration.httpShouldSetCookies
        cookieAcceptPolicy = configuration.httpCookieAcceptPolicy.rawValue
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
        configuration.connectionProxyDictionary = proxies
        return configuration
    }

    private static func texts(_ dictionary: [AnyHashable: Any]) -> [String: String] {
        Dictionary(dictionary.map { ("\($0.key.base)", "\($0.value)") }) { first, _ in first }
    }
}
