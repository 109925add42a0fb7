// SPDX-License-Identifier: MIT

import FoundationEssentials

extension Parameters {
    /// Parameters from any encodable value, in the order in which it encodes itself.
    ///
    /// A `Date` stays a date, a `Data` stays bytes, a `URL` becomes its text, a `Decimal` a double. An optional property that
    /// is nil, which `encodeIfPresent(_:forKey:)` encodes, becomes ``absent``; `encodeNil(forKey:)` makes a ``null``.
    ///
    /// A value that contains itself fails as one that is nested too deeply. It cannot be stopped where it writes nothing before
    /// it hands itself an encoder from `superEncoder()` or `superEncoder(forKey:)`, for these cannot throw: then the stack
    /// overflows.
    ///
    /// - Throws: ``SerializationError/parameters(_:)`` when the value is nested more than ``maximumDepth`` levels deep or fails
    ///   to encode itself.
    public init(encoding value: some Encodable) throws(SerializationError) {
        do {
            self = try ParametersEncoder(path: [], depth: 0).box(value)
        } catch let error as SerializationError {
            throw error
        } catch EncodingError.invalidValue(_, let context) {
            let path = context.codingPath.map { PathStep($0) }.pathDescription
            throw .parameters(
                .encodable(
                    path: path, reason: context.debugDescription,
                    underlying: context.underlyingError ?? EncodingError.invalidValue(value, context)))
        } catch {
            throw .parameters(.encodable(path: "", reason: String(describing: error), underlying: error))
        }
    }
}
