// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

extension ServerSentEvent {
    /// Returns the data decoded as a type.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; `nil`, the default, uses the JSON decoder of the session that received the event. If
    ///     it came from no session, a decoder that reads dates from ISO 8601 text is used; see
    ///     ``ANSerialization/JSONCoding``.
    /// - Throws: ``ANSerialization/SerializationError/json(_:)``, or
    ///   ``ANSerialization/SerializationError/propertyList(_:)`` with a `PropertyListDecoder`, if the data is empty or
    ///   malformed; ``ANSerialization/SerializationError/decoding(_:)`` if it does not match the type, and for every
    ///   error of a decoder for another format.
    public func decoded<Value: Decodable>(
        as type: Value.Type, decoder: (any ResponseDecoder)? = nil
    ) throws(SerializationError) -> Value {
        try (decoder ?? session.jsonDecoder ?? JSONCoding.standard.decoder).value(type, from: Data(data.utf8))
    }
}
