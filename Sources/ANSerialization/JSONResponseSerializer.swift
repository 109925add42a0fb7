// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// Gives the body as a ``JSONValue``; written `.json`.
///
/// A body that is empty or exactly one space has no value: it fails with ``SerializationError/emptyBody(status:wanted:)``,
/// and `.optional(.json)` makes it nil.
public struct JSONResponseSerializer: ResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation
    /// Whether the outermost value may be other than an array or object; true by default (RFC 8259 §2).
    public var allowsFragments: Bool

    /// Creates a serializer that takes JSON's media types unless said otherwise.
    public init(allowsFragments: Bool = true, validation: ResponseValidation = .json) {
        self.allowsFragments = allowsFragments
        self.validation = validation
    }

    /// Returns the value.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> JSONValue {
        guard !body.isBlankJSON else { throw .emptyBody(status: head.status.code, wanted: "JSON value") }
        let value = try JSONParser.parse(body)
        if !allowsFragments {
            switch value {
            case .array, .object: break
            case .null, .bool, .integer, .unsigned, .double, .string:
                throw .json(.init(reason: .fragment, offset: 0, excerpt: Excerpt.around(0, in: body)))
            }
        }
        return value
    }
}

extension Data {
    /// Whether there is nothing to parse: no byte, or the single space that some frameworks send for "no content".
    var isBlankJSON: Bool {
        isEmpty || (count == 1 && first == UInt8(ascii: " "))
    }
}
