// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

extension ServerSentEvent {
    /// Returns the data decoded as a type.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; `nil`, the default, for the session's for JSON, or for an event of no session one that
    ///     reads dates from ISO 8601 text. See ``ANSerialization/JSONCoding``.
    /// - Throws: ``ANSerialization/SerializationError/json(_:)`` or another error of the decoder's format if the data
    ///   is empty or malformed; ``ANSerialization/SerializationError/decoding(_:)`` if it does not match the type.
    public func decoded<Value: Decodable>(
        as type: Value.Type, decoder: (any ResponseDecoder)? = nil
    ) throws(SerializationError) -> Value {
        try (decoder ?? session.jsonDecoder ?? JSONCoding.standard.decoder).value(type, from: Data(data.utf8))
    }
}
