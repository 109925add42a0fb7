// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// A serializer that decodes the body as a ``PropertyListValue``, from XML or the binary format; available as
/// `.propertyList`.
///
/// By default an empty body results in an empty dictionary, and in `nil` for `.optional(.propertyList)`; see
/// ``emptyResponses``. To decode a type of your own, use `.propertyList(User.self)`.
public struct PropertyListResponseSerializer: AdjustableResponseSerializer, EmptyAcceptingSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with `application/x-plist`.
    public var validation: ResponseValidation
    /// The statuses with which the body may be empty; by default ``EmptyResponseRules/anyStatus``, any status.
    public var emptyResponses: EmptyResponseRules

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - validation: The statuses and media types that are accepted; by default 200 to 299 with
    ///     `application/x-plist`.
    ///   - emptyResponses: The statuses with which the body may be empty; any status by default.
    public init(validation: ResponseValidation = .propertyList, emptyResponses: EmptyResponseRules = .anyStatus) {
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the decoded value, or an empty dictionary for an empty body; the status and media type are not validated
    /// here. A dictionary may have the key `$null`, which `PropertyListDecoder` cannot read.
    ///
    /// - Throws: ``SerializationError/propertyList(_:)`` for a body that is malformed, nested more than 64 levels deep,
    ///   contains itself, or expands excessively; ``SerializationError/decoding(_:)`` for the references of keyed
    ///   archives (`CF$UID`); ``SerializationError/emptyBody(status:wanted:url:)`` for an empty body that
    ///   ``emptyResponses`` does not permit.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> PropertyListValue {
        let serializer = DecodableResponseSerializer(
            PropertyListValue.self, decoder: PropertyListDecoder(), validation: validation,
            emptyResponses: emptyResponses)
        do {
            return try serializer.decode(head, body)
        } catch {
            guard let substitute = Self.substitute(in: body),
                let value = try? serializer.decode(head, body.replacing(Self.null, with: substitute))
            else { throw error }
            return value.replacing(substitute, with: Self.null)
        }
    }

    /// The string that Foundation takes for null, and cannot read as a key.
    private static let null = Data("$null".utf8)

    /// Returns a string of the same length that the document does not contain; `nil` if it does not contain the string
    /// that Foundation cannot read.
    private static func substitute(in body: Data) -> Data? {
        guard body.firstRange(of: null) != nil else { return nil }
        return (UInt8(ascii: "a")...UInt8(ascii: "z")).lazy.map { null.dropLast() + [$0] }
            .first { body.firstRange(of: $0) == nil }
    }

    /// Returns whether the body is empty and the status permits that.
    package func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        emptyResponses.isBlank(body) && emptyResponses.allows(head.status.code)
    }
}

extension PropertyListValue {
    /// Returns the value with bytes replaced in all strings, keys and data.
    fileprivate func replacing(_ old: Data, with new: Data) -> PropertyListValue {
        func text(_ string: String) -> String {
            String(decoding: Data(string.utf8).replacing(old, with: new), as: UTF8.self)
        }
        return switch self {
        case .string(let string): .string(text(string))
        case .data(let data): .data(data.replacing(old, with: new))
        case .array(let elements): .array(elements.map { $0.replacing(old, with: new) })
        case .dictionary(let members):
            .dictionary(
                Dictionary(
                    members.map { (text($0), $1.replacing(old, with: new)) }, uniquingKeysWith: { first, _ in first }))
        case .bool, .integer, .unsigned, .real, .date: self
        }
    }
}
