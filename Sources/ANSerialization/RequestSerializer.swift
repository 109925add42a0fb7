// SPDX-License-Identifier: MIT

public import ANHTTP
import HTTPTypes

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

extension HTTPFields {
    /// Adds the fields whose names are not here yet, with all their values.
    mutating func fill(from defaults: HTTPFields) {
        var result = self
        for field in defaults where first(field.name) == nil {
            result.append(field)
        }
        self = result
    }

    /// Adds a field unless there is one of this name.
    mutating func fill(_ name: HTTPField.Name, _ value: String) {
        if first(name) == nil { append(HTTPField(name: name, value: value)) }
    }
}

extension Request {
    /// Whether the request was given a body, be it an empty one.
    var hasBody: Bool {
        if case .none = body.content { false } else { true }
    }
}
