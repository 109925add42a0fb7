// SPDX-License-Identifier: MIT

// Variants of the same methods for other call sites in Swift: with `error: &error`, and with `try`.

extension AFHTTPRequestSerializer {
    /// Creates a request with encoded parameters; sets `error` on failure.
    public func request(
        withMethod method: String, urlString: String, parameters: Any?, error: inout NSError?
    ) -> NSMutableURLRequest {
        withErrorPointer(&error) {
            request(withMethod: method, urlString: urlString, parameters: parameters, error: $0)
        }
    }

    /// Creates a request with encoded parameters; throws the error of the serializer, -1000 if `urlString` is no URL.
    public func request(
        withMethod method: String, urlString: String, parameters: Any?
    ) throws -> NSMutableURLRequest {
        try throwingError {
            request(withMethod: method, urlString: urlString, parameters: parameters, error: $0)
        }
    }

    /// Creates a request with a multipart form (RFC 7578); sets `error` on failure.
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

    /// Creates a request with a multipart form (RFC 7578); throws the first error of the serializer or a part.
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
    /// Returns a copy of the request with the encoded parameters; on failure, sets `error` and returns `nil`.
    public func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: inout NSError?
    ) -> URLRequest? {
        withErrorPointer(&error) {
            self.request(bySerializingRequest: request, withParameters: parameters, error: $0)
        }
    }

    /// Returns a copy of the request with the encoded parameters; throws the error of the serializer.
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
