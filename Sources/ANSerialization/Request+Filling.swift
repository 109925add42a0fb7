// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes

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

extension HTTPRequestSerializer {
    /// The request with the parameters in its query, or in a body that `write` makes of them.
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
