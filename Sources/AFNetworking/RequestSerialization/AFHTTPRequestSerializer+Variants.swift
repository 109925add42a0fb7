// SPDX-License-Identifier: MIT

// Variants of the same methods for other call sites in Swift: with `error: &error`, and with `try`.

extension AFHTTPRequestSerializer {
    /// Creates a request with encoded parameters, and with the header fields and settings of this serializer, for a
    /// call with `&error`.
    ///
    /// - Parameters:
    ///   - method: The HTTP method.
    ///   - urlString: The absolute URL.
    ///   - parameters: The values to encode; `nil` for none.
    ///   - error: Set on failure, otherwise unchanged. It is one of ``AFURLRequestSerializationErrorDomain``, such as
    ///     -1000 for a string that is not a URL and -1016 for parameters that cannot be encoded, or that of a query
    ///     block or of Foundation's encoder.
    /// - Returns: The request; after a failure one whose URL has no host, which cannot be sent.
    public func request(
        withMethod method: String, urlString: String, parameters: Any?, error: inout NSError?
    ) -> NSMutableURLRequest {
        withErrorPointer(&error) {
            request(withMethod: method, urlString: urlString, parameters: parameters, error: $0)
        }
    }

    /// Creates a request with encoded parameters, and with the header fields and settings of this serializer.
    ///
    /// - Parameters:
    ///   - method: The HTTP method.
    ///   - urlString: The absolute URL.
    ///   - parameters: The values to encode; `nil` for none.
    /// - Throws: An error of ``AFURLRequestSerializationErrorDomain``, such as -1000 if `urlString` is not a URL and
    ///   -1016 if the parameters cannot be encoded; the error of a query block, or of Foundation's encoder.
    public func request(
        withMethod method: String, urlString: String, parameters: Any?
    ) throws -> NSMutableURLRequest {
        try throwingError {
            request(withMethod: method, urlString: urlString, parameters: parameters, error: $0)
        }
    }

    /// Creates a request with a multipart form (RFC 7578), for a call with `&error`. If the form is empty, the request
    /// is the one without parameters.
    ///
    /// - Parameters:
    ///   - method: The HTTP method. GET and HEAD, which cannot have a form, fail with -1002 of
    ///     ``AFURLRequestSerializationErrorDomain``.
    ///   - urlString: The absolute URL.
    ///   - parameters: The form fields, sorted by name and sent before the parts of `block`: data as bytes, null as an
    ///     empty field, other values as text in ``stringEncoding``; `nil` for none.
    ///   - block: Appends the other parts of the form, before this method returns; `nil` for none.
    ///   - error: Set on failure to the first error of the serializer or of a part, such as -1000 of that domain for a
    ///     string that is not a URL and -1016 for values that cannot be encoded; otherwise unchanged. An error that
    ///     `appendPart` throws to `block` is not included.
    /// - Returns: The request, with a body stream, `Content-Type` and `Content-Length`; after a failure one whose URL
    ///   has no host, which cannot be sent.
    public func multipartFormRequest(
        withMethod method: String, urlString: String, parameters: [String: Any]?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, error: inout NSError?
    ) -> NSMutableURLRequest {
        withErrorPointer(&error) {
            multipartFormRequest(
                withMethod: method, urlString: urlString, parameters: parameters, constructingBodyWith: block, error: $0
            )
        }
    }

    /// Creates a request with a multipart form (RFC 7578). If the form is empty, the request is the one without
    /// parameters.
    ///
    /// - Parameters:
    ///   - method: The HTTP method. GET and HEAD, which cannot have a form, fail with -1002 of
    ///     ``AFURLRequestSerializationErrorDomain``.
    ///   - urlString: The absolute URL.
    ///   - parameters: The form fields, sorted by name and sent before the parts of `block`: data as bytes, null as an
    ///     empty field, other values as text in ``stringEncoding``; `nil` for none.
    ///   - block: Appends the other parts of the form, before this method returns; `nil` for none.
    /// - Returns: The request, with a body stream, `Content-Type` and `Content-Length`.
    /// - Throws: The first error of the serializer or a part, such as -1000 of ``AFURLRequestSerializationErrorDomain``
    ///   for a string that is not a URL and -1016 for values that cannot be encoded. An error that `appendPart` throws
    ///   to `block` is not included.
    public func multipartFormRequest(
        withMethod method: String, urlString: String, parameters: [String: Any]?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?
    ) throws -> NSMutableURLRequest {
        try throwingError {
            multipartFormRequest(
                withMethod: method, urlString: urlString, parameters: parameters, constructingBodyWith: block, error: $0
            )
        }
    }
}

extension AFURLRequestSerialization {
    /// Returns a copy of a request with the encoded parameters and the header fields of the serializer that it lacks,
    /// for a call with `&error`.
    ///
    /// - Parameters:
    ///   - request: The request, which is not changed.
    ///   - parameters: The values to encode; `nil` for none.
    ///   - error: Set to the error of the serializer on failure, otherwise unchanged. In this module it is one of
    ///     ``AFURLRequestSerializationErrorDomain``, such as -1016 for parameters that cannot be encoded, or that of a
    ///     query block or of Foundation's encoder.
    /// - Returns: The request; `nil` on failure.
    public func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: inout NSError?
    ) -> URLRequest? {
        withErrorPointer(&error) {
            self.request(bySerializingRequest: request, withParameters: parameters, error: $0)
        }
    }

    /// Returns a copy of a request with the encoded parameters and the header fields of the serializer that it lacks.
    ///
    /// - Parameters:
    ///   - request: The request, which is not changed.
    ///   - parameters: The values to encode; `nil` for none.
    /// - Throws: The error of the serializer, such as -1016 of ``AFURLRequestSerializationErrorDomain`` for parameters
    ///   that cannot be encoded, with the request in its user info if it has this domain; the error of a query block,
    ///   or of Foundation's encoder. If the serializer returns `nil` without an error, it is -1 of this domain.
    public func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?
    ) throws -> URLRequest {
        let result = try throwingError {
            self.request(bySerializingRequest: request, withParameters: parameters, error: $0)
        }
        guard let result else {
            throw NSError.requestSerialization(.unknown, reason: "The serializer returned no request.").about(request)
        }
        return result
    }
}
