// SPDX-License-Identifier: MIT

import FoundationEssentials

extension Parameters {
    /// Creates parameters from an encodable value, in the order in which it encodes its properties.
    ///
    /// `Date` and `Data` values are kept as such, a `URL` and a `UUID` become their text, and a `Decimal` the nearest
    /// double. A `Set` becomes an array. The elements of a `Set` and the entries of a Swift dictionary have an
    /// arbitrary order. A `nil` property becomes ``absent`` if it is encoded with `encodeIfPresent(_:forKey:)`, as
    /// synthesized code does; any other `nil` becomes ``null``, also a property that is encoded with
    /// `encode(_:forKey:)` or `encodeNil(forKey:)`. A value that encodes nothing becomes an empty dictionary. Of several
    /// values with one key the last one counts, and nested containers with one key are merged. The keys of a dictionary
    /// with strings as keys are not changed by the strategy for keys of a `JSONEncoder`.
    ///
    /// A value that contains itself fails because it is nested too deeply. There is one exception: a value that recurs
    /// only through `superEncoder()` or `superEncoder(forKey:)`, and encodes nothing before, overflows the stack,
    /// because these functions cannot throw.
    ///
    /// - Parameter value: The value, whose coding keys become the names.
    /// - Throws: ``SerializationError/parameters(_:)`` if the value is nested more than 512 levels deep, contains an
    ///   integer that exceeds 64 bits, or throws while it encodes itself; a ``SerializationError`` that it throws is
    ///   thrown unchanged.
    public init(encoding value: some Encodable) throws(SerializationError) {
        do {
            self = try ParametersEncoder(path: [], depth: 0).box(value)
        } catch {
            throw .encoding(value, error)
        }
    }
}

extension SerializationError {
    /// Returns the error for a value that failed to encode itself.
    static func encoding(_ value: any Encodable, _ error: any Error) -> SerializationError {
        switch error {
        case let error as SerializationError:
            error
        case EncodingError.invalidValue(_, let context):
            .parameters(
                .encodable(
                    path: context.codingPath.map { PathStep($0) }.pathDescription, reason: context.debugDescription,
                    underlying: context.underlyingError ?? EncodingError.invalidValue(value, context)))
        default:
            .parameters(.encodable(path: "", reason: String(describing: error), underlying: error))
        }
    }
}
