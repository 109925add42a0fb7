// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

extension WebSocketMessage {
    /// Returns the text or the bytes decoded as a type.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; `nil`, the default, uses a JSON decoder that reads dates from ISO 8601 text; see
    ///     ``ANSerialization/JSONCoding``. Pass `session.configuration.json.decoder` for that of a session.
    /// - Throws: ``ANSerialization/SerializationError/json(_:)``, or
    ///   ``ANSerialization/SerializationError/propertyList(_:)`` with a `PropertyListDecoder`, if the message is empty or
    ///   malformed; ``ANSerialization/SerializationError/decoding(_:)`` if it does not match the type, and for every
    ///   error of a decoder for another format.
    public func decoded<Value: Decodable>(
        as type: Value.Type, decoder: (any ResponseDecoder)? = nil
    ) throws(SerializationError) -> Value {
        let data =
            switch self {
            case .text(let text): Data(text.utf8)
            case .binary(let data): data
            }
        return try (decoder ?? JSONCoding.standard.decoder).value(type, from: data)
    }
}
