// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials

extension ResponseValidation {
    /// Validates a response whose body is streamed. The body of an accepted response is not read, except to learn that
    /// it is empty; of a rejected one, the error contains at most 64 KiB.
    ///
    /// - Parameter checksEmptyBody: Whether the media type of an empty body is checked.
    /// - Throws: ``ANSerialization/SerializationError/rejected(_:)``, or the errors of the body.
    func validate(_ head: ResponseHead, _ body: ResponseBody, checksEmptyBody: Bool = false) async throws {
        guard rejection(of: head, Data(), checksMediaType: true) != nil else { return }
        var beginning = Data()
        for try await chunk in body {
            beginning.append(chunk)
            if beginning.count >= Self.maximumRejectedSize { break }
        }
        let excerpt = Data(beginning.prefix(Self.maximumRejectedSize))
        if let rejection = rejection(of: head, excerpt, checksMediaType: checksEmptyBody || !excerpt.isEmpty) {
            throw SerializationError.rejected(rejection)
        }
    }

    /// The maximum size in bytes of a rejected body in an error.
    private static let maximumRejectedSize = 64 << 10
}
