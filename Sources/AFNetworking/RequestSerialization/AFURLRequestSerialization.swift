// SPDX-License-Identifier: MIT

/// A type that encodes parameters into requests. ``AFHTTPRequestSerializer`` and its subclasses conform; a manager
/// accepts these only.
public protocol AFURLRequestSerialization: NSObjectProtocol {
    /// Returns a copy of a request with encoded parameters. A verb of ``AFHTTPSessionManager`` calls an override in a
    /// subclass of this module's serializers on the thread that calls the verb.
    ///
    /// - Parameters:
    ///   - request: The request, which must not be changed.
    ///   - parameters: The values to encode, usually a dictionary; `nil` for none.
    ///   - error: Takes the error if the request cannot be created; `nil` if the caller ignores it.
    /// - Returns: The request; `nil` on failure.
    func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
    ) -> URLRequest?
}

/// A style of encoding parameters into a query; there is only one. For another encoding, set a block by
/// `setQueryStringSerializationWith(_:)`.
public enum AFHTTPRequestQueryStringSerializationStyle: UInt, Codable, Sendable {
    /// The style of ``AFQueryStringFromParameters(_:)``: sorted names, `name[key]` for dictionaries, `name[]` for
    /// arrays, and the name alone for elements of sets.
    case httpRequestQueryStringDefaultStyle = 0
}

/// The domain of errors of request serializers. Their codes are those of `NSURLErrorDomain`: -1000 for a bad URL, and
/// for a part from a file that is unreadable or given an invalid media type; -1002 for a form with GET or HEAD; -1016
/// for parameters or other parts that cannot be encoded; and -1 for a serializer that returned no request.
public let AFURLRequestSerializationErrorDomain = "com.alamofire.error.serialization.request"

/// The user info key for the `URLRequest` of an error of a request or response serializer of this module.
///
/// It is absent from errors that precede the request, such as that of a bad URL or of an unreadable file. An error of a
/// response serializer has it only if a manager's task ended with it.
public let AFNetworkingOperationFailingURLRequestErrorKey = "com.alamofire.serialization.request.error.response"

/// The packet size that AFNetworking recommends for throttled uploads over 3G: 16 KiB.
public let kAFUploadStream3GSuggestedPacketSize: UInt = 16384

/// The pause between packets that AFNetworking recommends for throttled uploads over 3G: 0.2 seconds.
public let kAFUploadStream3GSuggestedDelay: TimeInterval = 0.2
