// SPDX-License-Identifier: MIT

/// What an ``AFHTTPRequestSerializer`` was told; what is nil was not.
struct RequestSerializerState: Sendable {
    var stringEncoding = String.Encoding.utf8
    var headers: [String: String] = [:]
    var allowsCellularAccess: Bool?
    var cachePolicy: NSURLRequest.CachePolicy?
    var handlesCookies: Bool?
    var usesPipelining: Bool?
    var serviceType: NSURLRequest.NetworkServiceType?
    var timeoutInterval: TimeInterval?
    var methodsInURI: Set<String> = ["GET", "HEAD", "DELETE"]
    var style = AFHTTPRequestQueryStringSerializationStyle.httpRequestQueryStringDefaultStyle
    var makeQuery: Handover<AFHTTPRequestSerializer.QueryBlock>?
}
