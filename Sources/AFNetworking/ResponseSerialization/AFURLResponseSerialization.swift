// SPDX-License-Identifier: MIT

/// Makes objects of responses.
public protocol AFURLResponseSerialization: NSObjectProtocol {
    /// Makes an object of a response and its body.
    ///
    /// There may be an object and an error at the same time, such as an API's own words about what went wrong.
    func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any?
}

extension AFURLResponseSerialization {
    /// Makes an object of a response and its body; there may be an object and an error at the same time.
    public func responseObject(for response: URLResponse?, data: Data?, error: inout NSError?) -> Any? {
        withErrorPointer(&error) { responseObject(for: response, data: data, error: $0) }
    }
}

/// The domain of errors of response serializers.
public let AFURLResponseSerializationErrorDomain = "com.alamofire.error.serialization.response"

/// The key of the response that an error is about, an `HTTPURLResponse`.
public let AFNetworkingOperationFailingURLResponseErrorKey = "com.alamofire.serialization.response.error.response"

/// The key of the body of the response that an error is about, a `Data`.
public let AFNetworkingOperationFailingURLResponseDataErrorKey = "com.alamofire.serialization.response.error.data"

/// Returns JSON without nulls: array elements and dictionary entries that are null are left out, at any depth.
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
