// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
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
            guard let (list, substitute) = Self.replacingNull(in: body), let value = try? serializer.decode(head, list)
            else { throw error }
            return value.replacing(substitute, with: Self.null)
        }
    }

    /// The string that Foundation takes for null, and cannot read as a key.
    private static let null = "$null"

    /// Returns the document with another string in place of the one that Foundation cannot read, and that string, which
    /// no string of the document contains; `nil` if the document does not contain the one that Foundation cannot read.
    private static func replacingNull(in body: Data) -> (list: Data, substitute: String)? {
        guard let document = try? PropertyListGuard.checked(body) else { return nil }
        if let list = BinaryPropertyList(document), document.starts(with: "bplist".utf8) {
            return list.replacing(null)
        }
        guard document.firstRange(of: Data(null.utf8)) != nil else { return nil }
        // A string may contain anything as references of XML, but nobody can guess this.
        let substitute = String(UInt64.systemRandom(in: 0 ... .max), radix: 36)
        return (document.replacing(Data(null.utf8), with: Data(substitute.utf8)), substitute)
    }

    /// Returns whether the body is empty and the status permits that.
    package func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        emptyResponses.isBlank(body) && emptyResponses.allows(head.status.code)
    }
}

extension PropertyListValue {
    /// Returns the value with text replaced in all strings and keys.
    fileprivate func replacing(_ old: String, with new: String) -> PropertyListValue {
        switch self {
        case .string(let string): .string(string.replacing(each: old, with: new))
        case .array(let elements): .array(elements.map { $0.replacing(old, with: new) })
        case .dictionary(let members):
            .dictionary(
                Dictionary(
                    members.map { ($0.replacing(each: old, with: new), $1.replacing(old, with: new)) },
                    uniquingKeysWith: { first, _ in first }))
        case .bool, .integer, .unsigned, .real, .date, .data: self
        }
    }
}
