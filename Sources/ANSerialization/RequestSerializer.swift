// SPDX-License-Identifier: MIT

public import ANHTTP

/// Makes a request from another one and parameters.
///
/// It is a value: what it needs, it holds.
public protocol RequestSerializer: Sendable {
    /// Returns the request with the parameters in it.
    ///
    /// Header fields that the request has already are kept; nil parameters mean that there are none, which differs from
    /// empty ones.
    ///
    /// - Throws: ``SerializationError``.
    func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request
}

extension RequestSerializer where Self == HTTPRequestSerializer {
    /// Parameters in the query for GET, HEAD and DELETE, in a form body for all other methods.
    public static var http: HTTPRequestSerializer { HTTPRequestSerializer() }
}

extension RequestSerializer where Self == JSONRequestSerializer {
    /// Parameters in the query for GET, HEAD and DELETE, in a JSON body for all other methods.
    public static var json: JSONRequestSerializer { JSONRequestSerializer() }
}
