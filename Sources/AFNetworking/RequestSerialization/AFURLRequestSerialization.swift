// SPDX-License-Identifier: MIT

/// A type that encodes parameters into requests.
public protocol AFURLRequestSerialization: NSObjectProtocol {
    /// Returns a copy of a request with encoded parameters: dictionaries, arrays, sets, strings and numbers. If the request
    /// cannot be created, sets `error` and returns `nil`.
    func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
    ) -> URLRequest?
}

/// A style of encoding parameters into a query.
public enum AFHTTPRequestQueryStringSerializationStyle: UInt, Codable, Sendable {
    /// Sorted names, `name[key]` for dictionaries, `name[]` for arrays.
    case httpRequestQueryStringDefaultStyle = 0
}

/// The domain of errors of request serializers.
public let AFURLRequestSerializationErrorDomain = "com.alamofire.error.serialization.request"

/// The user info key for the `URLRequest` of an error.
public let AFNetworkingOperationFailingURLRequestErrorKey = "com.alamofire.serialization.request.error.response"

/// The packet size that AFNetworking recommends for throttled uploads over 3G: 16 KiB.
public let kAFUploadStream3GSuggestedPacketSize: UInt = 16384

/// The pause between packets that AFNetworking recommends for throttled uploads over 3G: 0.2 seconds.
public let kAFUploadStream3GSuggestedDelay: TimeInterval = 0.2
