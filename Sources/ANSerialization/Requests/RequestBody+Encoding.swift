// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

// Bodies that a session encodes: by a verb when it creates the request, and for a `Request` of the program's own when it
// is sent. Both set `Content-Type`.

extension RequestBody {
    /// Creates a replayable body with a value as JSON.
    ///
    /// ```swift
    /// let created = try await api.post("users", body: .json(user), as: .decodable(User.self)).value
    /// ```
    ///
    /// A session encodes it, also as a part of a ``form(_:)``, and sets `Content-Type: application/json` unless the
    /// request or the session's serializer has another. A value that cannot be encoded fails with
    /// ``ANSerialization/SerializationError``, in a `SessionError`. A transport that is used without a session does not
    /// set the field, and encodes the value while it is sent.
    ///
    /// - Parameters:
    ///   - value: The value; one of any type, also a number or a text (RFC 8259 §2).
    ///   - encoder: The encoder, which must not be changed afterwards; `nil`, the default, for the session's, see
    ///     ``ANSerialization/JSONCoding``, or without a session for one that writes dates as ISO 8601 text.
    public static func json(_ value: some Encodable & Sendable, encoder: JSONEncoder? = nil) -> RequestBody {
        .json(encoder: encoder) { encoder throws(SerializationError) in
            do {
                return try encoder.encode(value)
            } catch {
                throw .encoding(value, error)
            }
        }
    }

    /// Creates a body with the JSON text that a closure returns for an encoder.
    static func json(
        encoder: JSONEncoder?, _ encode: @escaping @Sendable (JSONEncoder) throws(SerializationError) -> Data
    ) -> RequestBody {
        RequestBody(isReplayable: true, mediaType: "application/json") { writer in
            try await writer.write(encode(encoder ?? JSONCoding.standard.encoder))
        } encode: { request, standard in
            request.body = .bytes(try encode(encoder ?? standard))
        }
    }

    /// Creates a body with a multipart form; no body for a form without parts.
    ///
    /// ```swift
    /// try await api.post("photos", body: .form(form))
    /// ```
    ///
    /// A session sets `Content-Type` with the form's boundary; a request that has the field already fails with
    /// ``ANSerialization/SerializationError/multipart(_:)``, in a `SessionError`, and so does a form whose body cannot be
    /// made, see ``ANSerialization/MultipartFormData/makeBody()``. A transport that is used without a session does not
    /// set the field. The body is replayable if all parts are.
    public static func form(_ form: MultipartFormData) -> RequestBody {
        guard !form.isEmpty else { return .none }
        return RequestBody(isReplayable: form.isReplayable, mediaType: nil) { writer in
            try await form.makeBody().body.write(to: writer)
        } encode: { request, encoder in
            guard !request.headers.contains(.contentType) else {
                throw SerializationError.multipart(.contentTypeReplaced)
            }
            let form = try form.encodingParts { body in
                var part = Request(method: request.method, url: request.url, body: body)
                try part.encodeBody(with: encoder)
                return part.body
            }
            (request.headers[.contentType], request.body) = try form.makeBody()
        }
    }
}

extension RequestBody {
    /// Returns this body with a change that a session makes once it has encoded it; `nil` for a body that is sent as it
    /// is.
    ///
    /// - Parameter other: The changed body, for use without a session.
    func afterEncoding(
        without other: RequestBody, _ change: @escaping @Sendable (inout Request) throws -> Void
    ) -> RequestBody? {
        guard let encoding else { return nil }
        return RequestBody(isReplayable: isReplayable, mediaType: encoding.mediaType) { writer in
            try await other.write(to: writer)
        } encode: { request, encoder in
            try encoding.encode(&request, encoder)
            try change(&request)
        }
        .gated(as: self)
    }
}

extension Request {
    /// Whether the request has a body, even an empty one.
    var hasBody: Bool {
        if case .none = body.content { false } else { true }
    }

    /// Encodes a body such as JSON or a form, and adds the fields that describe it; other bodies are not changed.
    ///
    /// - Throws: ``ANSerialization/SerializationError``.
    package mutating func encodeBody(with encoder: JSONEncoder) throws {
        if let mediaType = try encodeUntypedBody(with: encoder) { headers.fill(.contentType, mediaType) }
    }

    /// Encodes the body like ``encodeBody(with:)``, and returns the media type for a request that has none instead of
    /// adding it.
    package mutating func encodeUntypedBody(with encoder: JSONEncoder) throws -> String? {
        guard let encoding = body.encoding else { return nil }
        let gate = body.gate
        try encoding.encode(&self, encoder)
        if let gate { body.gate = gate }
        return encoding.mediaType
    }
}
