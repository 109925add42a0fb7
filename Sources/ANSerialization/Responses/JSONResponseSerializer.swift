// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// A serializer that parses the body as a ``JSONValue``, available as `.json`.
///
/// By default an empty body, or one of exactly one space, results in ``JSONValue/null``, and in `nil` for
/// `.optional(.json)`; see ``emptyResponses``.
public struct JSONResponseSerializer: AdjustableResponseSerializer, EmptyAcceptingSerializer {
    /// The statuses and media types that are accepted; by default those of ``ResponseValidation/json``.
    public var validation: ResponseValidation
    /// The accepted extensions of JSON; by default only arrays and objects by RFC 8259 are accepted.
    package var options: Options
    /// The statuses with which the body may be empty, and whether a single space counts as empty; by default
    /// ``EmptyResponseRules/json``, any status and a space.
    public var emptyResponses: EmptyResponseRules

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - allowsFragments: Whether the outermost value may be a string, number, Boolean value or null (RFC 8259 §2), not
    ///     only an array or object; `false` by default.
    ///   - allowsJSON5: Whether the text may be JSON5 (https://spec.json5.org): with comments, trailing commas, unquoted
    ///     names, single quotes, hexadecimal numbers, and so on; `false` by default.
    ///
    ///     A text that is not also JSON is parsed by Foundation's `JSONDecoder`, which differs from the specification: it
    ///     rejects whitespace outside of ASCII, the character NUL in escapes, and escapes such as `\v`, `\0` and `\a`; of
    ///     those that JSON lacks, it accepts only `\'`, `\x41`, and escaped line ends, which it keeps. The text may be
    ///     nested 64 levels deep. Numbers whose value is an integer of up to 64 bits become ``JSONValue/integer(_:)`` or
    ///     ``JSONValue/unsigned(_:)``, even if written as `5.0`; `Infinity` and `NaN` become ``JSONValue/double(_:)``. Of
    ///     members with the same name the first wins. Errors have no position.
    ///   - validation: The statuses and media types that are accepted; by default 200 to 299 with the media types of
    ///     JSON.
    ///   - emptyResponses: The statuses with which the body may be empty; by default any status, and a single space
    ///     counts as empty.
    public init(
        allowsFragments: Bool = false, allowsJSON5: Bool = false, validation: ResponseValidation = .json,
        emptyResponses: EmptyResponseRules = .json
    ) {
        var options: Options = allowsFragments ? .allowsFragments : []
        if allowsJSON5 { options.insert(.allowsJSON5) }
        self.init(options: options, validation: validation, emptyResponses: emptyResponses)
    }

    package init(
        options: Options, validation: ResponseValidation = .json, emptyResponses: EmptyResponseRules = .json
    ) {
        self.options = options
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the parsed value, or ``JSONValue/null`` for an empty body; the status and
    /// media type are not validated here.
    ///
    /// - Throws: ``SerializationError/json(_:)`` for a body that is malformed, nested more than 512 levels deep (64 in
    ///   JSON5), contains a number that is too large or too small for a `Double`, or is, without `allowsFragments`,
    ///   neither an array nor an object;
    ///   ``SerializationError/emptyBody(status:wanted:url:)`` for an empty body that ``emptyResponses`` does not permit.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> JSONValue {
        guard !emptyResponses.isBlank(body) else {
            return try emptyResponses.emptyValue(JSONValue.self, status: head.status.code)
        }
        return try JSONParser.parse(body, options: options)
    }

    /// Returns whether the body is empty and the status permits that.
    package func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        emptyResponses.isBlank(body) && emptyResponses.allows(head.status.code)
    }
}

extension JSONResponseSerializer {
    /// The documents that a serializer accepts in addition to arrays and objects by RFC 8259.
    package struct Options: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        package static let allowsFragments = Self(rawValue: 1)
        package static let allowsJSON5 = Self(rawValue: 2)
    }
}

extension JSONValue: EmptyRepresentable {
    /// The value for an empty body: null.
    package static var emptyValue: JSONValue { .null }
}
