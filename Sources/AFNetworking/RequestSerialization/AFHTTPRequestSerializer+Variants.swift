// SPDX-License-Identifier: MIT

// The same methods in the other forms that Swift code has for them: with `&error`, and throwing.

extension AFHTTPRequestSerializer {
    /// Makes a request with parameters; `error` is set when it cannot be made.
    public func request(
        withMethod method: String, urlString: String, parameters: Any?, error: inout NSError?
    ) -> NSMutableURLRequest {
        withErrorPointer(&error) {
            request(withMethod: method, urlString: urlString, parameters: parameters, error: $0)
        }
    }

    /// Makes a request with parameters.
    ///
    /// - Throws: The error of the serializer.
    public func request(
        withMethod method: String, urlString: String, parameters: Any?
    ) throws -> NSMutableURLRequest {
        try throwingError {
            request(withMethod: method, urlString: urlString, parameters: parameters, error: $0)
        }
    }

    /// Makes a request with a multipart form; `error` is set when it cannot be made.
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

    /// Makes a request with a multipart form.
    ///
    /// - Throws: The error of the serializer or of the form.
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
    /// Returns a request like this one, with the parameters in it; `nil`, and `error` is set, when it cannot be made.
    public func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: inout NSError?
    ) -> URLRequest? {
        withErrorPointer(&error) {
            self.request(bySerializingRequest: request, withParameters: parameters, error: $0)
        }
    }

    /// Returns a request like this one, with the parameters in it.
    ///
    /// - Throws: The error of the serializer.
    public func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?
    ) throws -> URLRequest {
        let result = try throwingError {
            self.request(bySerializingRequest: request, withParameters: parameters, error: $0)
        }
        guard let result else {
            throw NSError.requestSerialization(.unknown, reason: "The serializer has made no request.").about(request)
        }
        return result
    }
}
