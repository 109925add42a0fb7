// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSerialization
package import HTTPTypes

/// A decision procedure for resuming a download: the header fields to send, and the action for each response.
///
/// | requested | response | action |
/// |---|---|---|
/// | the whole | 200–299 except 206 | write from the start |
/// | the whole, or a range | 206 with the range of the whole file | write from the start |
/// | the whole | any other 206 | fail: no range was requested |
/// | a range that the program chose | 200–299 | write from the start |
/// | a range | 206 that starts at the offset, of the same ``Representation`` | append |
/// | a range | any other 206 | start over: request the whole |
/// | a range, to continue a body that may be decoded | 200 or 203, with a content coding | start over: request the whole |
/// | a range | any other 200 or 203 | start over with this response |
/// | a range | 416 of the same version, with the size that is already there and was unknown | the file is complete |
/// | a range | any other 416 | start over: request the whole |
/// | either | another status | reject |
///
/// A 204 or another status of success does not contain the resource (RFC 9110 §15.3), whose first bytes are there.
///
/// If the program does not permit starting over, the download fails instead.
package struct ResumePlan: Hashable, Sendable {
    /// The number of valid bytes, at which the requested range starts.
    package private(set) var offset: Int64
    private let representation: Representation
    private let startsOver: Bool
    /// Whether the content is stored as received, with its content codings, even if it is the whole.
    private let isIdentity: Bool
    /// Whether the request has a `Range` of its own, so that the file consists of that range.
    private var hasOwnRange = false

    /// Creates a plan that requests the whole file, or the range that the request already has.
    package init(hasOwnRange: Bool = false) {
        self.init(offset: 0, of: Representation(), startsOver: true)
        self.hasOwnRange = hasOwnRange
    }

    /// Creates a plan that requests the bytes of a representation from an offset on.
    ///
    /// If all bytes are there, the last one is requested again: the response shows whether the file is unchanged,
    /// whereas a range after the end would be an error.
    package init(offset: Int64, of representation: Representation, startsOver: Bool, isIdentity: Bool = true) {
        self.offset = max(0, representation.totalBytes.map { min(offset, max($0, 1) - 1) } ?? offset)
        self.representation = representation
        self.startsOver = startsOver
        self.isIdentity = isIdentity
    }

    /// The action for a response.
    package enum Action: Hashable, Sendable {
        /// Writes the body as the whole file.
        case write
        /// Appends the body, which has this range.
        case append(ContentRange)
        /// Ends the download: all bytes were already there.
        case complete
        /// Requests the whole file, for this reason.
        case startOver(SessionError.ResumeFailure)
        /// Fails for this reason.
        case fail(SessionError.ResumeFailure)
        /// Rejects the response for its status.
        case reject
    }

    /// The header fields that request the range; empty to request the whole (RFC 9110 §14.2 and §13.1.5).
    package var fields: HTTPFields {
        guard offset > 0 else { return [:] }
        var fields: HTTPFields = [.range: "bytes=\(offset)-"]
        if let validator = representation.validator { fields[.ifRange] = validator.fieldValue }
        return fields
    }

    /// The statuses of responses that contain the file, or the missing part of it.
    package var acceptableStatuses: Set<Int> {
        offset > 0 ? [200, 203, 206] : ResponseValidation.successfulStatuses
    }

    /// Returns the action for a response.
    ///
    /// - Parameter isReplaced: Whether an interceptor has replaced the body, so that its bytes are not those of the range.
    package func action(for head: ResponseHead, isReplaced: Bool = false) -> Action {
        let status = head.status.code
        guard offset > 0 else {
            if status == 206, !hasOwnRange, !isWhole(contentRange(of: head)) {
                return .fail(.wrongRange(head.headers.first(.contentRange)))
            }
            return (200...299).contains(status) ? .write : .reject
        }
        switch status {
        case 206: return partialAction(for: head, isReplaced)
        case 416:
            // If the size was known, the range was not after the end.
            guard let range = contentRange(of: head), range.bytes == nil, range.total == offset,
                representation.totalBytes == nil, representation.validator?.isContradicted(by: head) != true
            else { return startOver(.changed) }
            return .complete
        case 200, 203:
            let isSame = representation.validator?.isConfirmed(by: head) == true
            guard startsOver else { return .fail(isSame ? .rangesNotSupported : .changed) }
            // The whole is requested without the restriction to no coding, as it was at first.
            return isIdentity || !head.hasContentCoding ? .write : .startOver(.changed)
        default: return .reject
        }
    }

    private func partialAction(for head: ResponseHead, _ isReplaced: Bool) -> Action {
        let range = contentRange(of: head)
        let wrong = SessionError.ResumeFailure.wrongRange(head.headers.first(.contentRange))
        if startsOver, isWhole(range), isIdentity || !head.hasContentCoding { return .write }
        guard let range, range.bytes?.lowerBound == offset, !isReplaced else { return startOver(wrong) }
        if representation.isContradicted(by: head, total: range.total) { return startOver(.changed) }
        return .append(range)
    }

    /// Whether a range is that of the whole file.
    private func isWhole(_ range: ContentRange?) -> Bool {
        guard let range, let bytes = range.bytes, let total = range.total else { return false }
        return bytes.lowerBound == 0 && bytes.upperBound == total - 1
    }

    private func startOver(_ failure: SessionError.ResumeFailure) -> Action {
        startsOver ? .startOver(failure) : .fail(failure)
    }

    private func contentRange(of head: ResponseHead) -> ContentRange? {
        head.headers.first(.contentRange).flatMap(ContentRange.init)
    }
}
