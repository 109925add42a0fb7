// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials
import HTTPTypes

extension HTTPFields {
    /// Adds the fields whose names are missing, with all of their values.
    mutating func fill(from defaults: HTTPFields) {
        var result = self
        for field in defaults where first(field.name) == nil {
            result.append(field)
        }
        self = result
    }

    /// Adds a field unless one with its name exists.
    mutating func fill(_ name: HTTPField.Name, _ value: String) {
        if first(name) == nil { append(HTTPField(name: name, value: value)) }
    }
}

extension Request {
    /// Whether the request has a body, even an empty one.
    var hasBody: Bool {
        if case .none = body.content { false } else { true }
    }

    /// Sets a JSON body, and `Content-Type` unless it is set.
    package mutating func setBody(json value: any Encodable, encoder: JSONEncoder) throws(SerializationError) {
        guard !hasBody else { throw .parameters(.bodyPresent) }
        do {
            body = .bytes(try encoder.encode(value))
        } catch {
            throw .encoding(value, error)
        }
        headers.fill(.contentType, "application/json")
    }
}

extension HTTPRequestSerializer {
    /// Returns the request with the parameters in its query, or in a body created by `write`.
    func serialize(
        _ request: Request, parameters: Parameters?, type: String,
        write: (Parameters) throws(SerializationError) -> Data
    ) throws(SerializationError) -> Request {
        if let request = try serializeQuery(request, parameters: parameters) { return request }
        var result = prepared(request)
        guard let parameters else { return result }
        guard !request.hasBody else { throw .parameters(.bodyPresent) }
        result.body = .bytes(try write(parameters))
        result.headers.fill(.contentType, type)
        return result
    }
}
