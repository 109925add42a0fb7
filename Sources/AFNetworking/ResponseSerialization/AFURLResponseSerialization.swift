// SPDX-License-Identifier: MIT

import AsyncNetworking
import HTTPTypes

/// A type that converts responses to objects. ``AFHTTPResponseSerializer`` and its subclasses conform.
public protocol AFURLResponseSerialization: NSObjectProtocol {
    /// Returns the object for a response and its body. There may be both an object and an error, for example the error
    /// message of an API.
    ///
    /// A manager calls it when a transfer has succeeded, for any status, on any thread and for several tasks at once. One
    /// of the program may wait, such as for another request: it is called on dispatch queues, for up to 64 tasks of all
    /// managers at once. If all of these wait for tasks that have such a serializer, too, none goes on.
    ///
    /// - Parameters:
    ///   - response: The response, if any.
    ///   - data: The body, if any; empty for a download.
    ///   - error: Takes the error if the response is unacceptable or its body cannot be converted; `nil` if the caller
    ///     ignores it.
    /// - Returns: The object, if any.
    func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any?
}

extension AFURLResponseSerialization {
    /// Returns the object for a response and its body, for a call with `&error`. There may be both an object and an
    /// error, for example the error message of an API.
    ///
    /// - Parameters:
    ///   - response: The response, if any.
    ///   - data: The body, if any; empty for a download.
    ///   - error: Set if the response is unacceptable or its body cannot be converted, otherwise unchanged.
    /// - Returns: The object, if any.
    public func responseObject(for response: URLResponse?, data: Data?, error: inout NSError?) -> Any? {
        withErrorPointer(&error) { responseObject(for: response, data: data, error: $0) }
    }
}

/// The domain of errors of response serializers. Their codes are those of `NSURLErrorDomain`: -1011 for an unacceptable
/// status code, -1016 for an unacceptable media type or a body that is not an image. A body that is not JSON, XML or a
/// property list has an error of `NSCocoaErrorDomain` or `XMLParser.errorDomain` instead.
public let AFURLResponseSerializationErrorDomain = "com.alamofire.error.serialization.response"

/// The user info key for the `HTTPURLResponse` of an error of a response serializer of this module. Absent if there was
/// no such response.
public let AFNetworkingOperationFailingURLResponseErrorKey = "com.alamofire.serialization.response.error.response"

/// The user info key for the response body, a `Data`, of an error of a response serializer of this module. Absent if
/// there was no body, or no `HTTPURLResponse`.
public let AFNetworkingOperationFailingURLResponseDataErrorKey = "com.alamofire.serialization.response.error.data"

/// Returns a JSON object without nulls: null elements of arrays and null values of dictionaries are removed at any
/// depth.
///
/// - Parameters:
///   - object: The object, which is not changed; one that is neither an array nor a dictionary with string keys is
///     returned unchanged, also `NSNull`.
///   - readingOptions: The options for reading, which have no effect; none by default.
public func AFJSONObjectByRemovingKeysWithNullValues(
    _ object: Any, _ readingOptions: JSONSerialization.ReadingOptions = []
) -> Any {
    if let array = object as? [Any] {
        return array.filter { !($0 is NSNull) }.map { AFJSONObjectByRemovingKeysWithNullValues($0, readingOptions) }
    }
    if let dictionary = object as? [String: Any] {
        return dictionary.filter { !($0.value is NSNull) }
            .mapValues { AFJSONObjectByRemovingKeysWithNullValues($0, readingOptions) }
    }
    return object
}

/// A type with a response serializer: ``AFURLSessionManager`` and its subclasses. Programs need not adopt it.
///
/// It exists because `responseSerializer` has another type in ``AFHTTPSessionManager`` than in its superclass, which
/// Swift permits only for a property of a protocol extension.
public protocol ResponseSerializing: AnyObject {
    /// The serializer that converts responses to objects, of any type. `responseSerializer` is the same object, with
    /// the type that the class declares.
    var anyResponseSerializer: any AFURLResponseSerialization { get set }
}

extension ResponseSerializing {
    /// The serializer that converts responses to objects. Default: an ``AFJSONResponseSerializer``. It is read when a
    /// response is complete, so a change also applies to running tasks.
    public var responseSerializer: any AFURLResponseSerialization {
        get { anyResponseSerializer }
        set { anyResponseSerializer = newValue }
    }
}

/// An error that marks a response as unacceptable without setting an error.
///
/// Validation throws it for an unacceptable media type if the body is empty and the status code is acceptable; an
/// override of ``AFHTTPResponseSerializer/validate(_:data:)`` may throw it for any response. No error is set then, and
/// the body is still converted, so that a body that is not empty counts as success, with its object, unless the
/// conversion fails. For an empty body the result depends on the serializer:
///
/// | serializer | object | error |
/// |---|---|---|
/// | ``AFJSONResponseSerializer``, ``AFImageResponseSerializer`` | none | none, which is a success |
/// | ``AFPropertyListResponseSerializer``, ``AFXMLDocumentResponseSerializer`` | none | that of an empty document |
/// | ``AFXMLParserResponseSerializer`` | a parser of the empty document | none |
/// | ``AFHTTPResponseSerializer`` | the empty body | none |
///
/// If the caller passes no error pointer, the serializers that convert bodies return no object.
public struct AFUnnamedError: Error, Sendable {
    /// Creates the error, for an override of ``AFHTTPResponseSerializer/validate(_:data:)``.
    public init() {}
}

/// The properties of a response that validation reads.
struct ResponseDescription {
    let status: Int
    /// The media type without parameters, in lower case; `nil` if the response has none.
    let mediaType: String?
    let url: URL?
    /// Returns the response; called only when an error needs it.
    let response: () -> HTTPURLResponse?

    init(_ response: HTTPURLResponse) {
        status = response.statusCode
        mediaType = response.mimeType
        url = response.url
        self.response = { response }
    }

    init(_ head: ResponseHead, response: @escaping () -> HTTPURLResponse?) {
        status = head.status.code
        mediaType = head.mediaType
        url = head.url
        self.response = response
    }

    /// Whether the media type is one of `types`, compared without regard to case.
    func hasMediaType(among types: Set<String>) -> Bool {
        guard let mediaType else { return false }
        return types.contains(mediaType) || types.contains { $0.lowercased() == mediaType.lowercased() }
    }

    /// The reason phrase for the status code in lower case, as on Apple's platforms.
    var phrase: String { HTTPURLResponse.localizedString(forStatusCode: status).lowercased() }

    /// Returns an error about the response.
    func error(_ code: URLError.Code, _ text: String, _ data: Data?) -> NSError {
        NSError(
            domain: AFURLResponseSerializationErrorDomain, code: code.rawValue,
            userInfo: [NSLocalizedDescriptionKey: text]
        ).adding(userInfo(data))
    }

    /// Returns the user info of errors about the response.
    func userInfo(_ data: Data?) -> [String: Any] {
        var userInfo: [String: Any] = [:]
        userInfo[NSURLErrorFailingURLErrorKey] = url
        userInfo[AFNetworkingOperationFailingURLResponseErrorKey] = response()
        userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] = data
        return userInfo
    }
}

/// A serializer that converts the bodies of responses, whereas others return them.
protocol BodyConverter: AFHTTPResponseSerializer {
    /// Returns the object for a body.
    func convert(_ data: Data?) throws -> Any?
}
