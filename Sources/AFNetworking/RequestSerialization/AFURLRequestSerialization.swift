// SPDX-License-Identifier: MIT

/// Puts parameters into requests.
public protocol AFURLRequestSerialization: NSObjectProtocol {
    /// Returns a request like this one, with the parameters in it.
    ///
    /// - Parameters:
    ///   - request: The request, which stays as it is.
    ///   - parameters: What to put into it: dictionaries, arrays, sets, strings, numbers; nil for nothing.
    ///   - error: Says why there is no request.
    /// - Returns: The request; nil when it cannot be made.
    func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
    ) -> URLRequest?
}

/// How parameters become the text of a query.
public enum AFHTTPRequestQueryStringSerializationStyle: UInt, Codable, Sendable {
    /// Names in order, `name[key]` for dictionaries, `name[]` for arrays.
    case httpRequestQueryStringDefaultStyle = 0
}

/// The domain of errors of request serializers.
public let AFURLRequestSerializationErrorDomain = "com.alamofire.error.serialization.request"

/// The key of the request that an error is about.
public let AFNetworkingOperationFailingURLRequestErrorKey = "com.alamofire.serialization.request.error.response"

/// The size of packets that was recommended for slow networks: 16 KiB.
public let kAFUploadStream3GSuggestedPacketSize: UInt = 16384

/// The pause between packets that was recommended for slow networks: 0.2 seconds.
public let kAFUploadStream3GSuggestedDelay: TimeInterval = 0.2
