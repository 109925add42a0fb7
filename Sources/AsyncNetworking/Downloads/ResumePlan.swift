// SPDX-License-Identifier: MIT

package import ANHTTP
package import HTTPTypes

/// A decision procedure for resuming a download: the header fields to send, and the action for each response.
///
/// | requested | response | action |
/// |---|---|---|
/// | the whole | 200–299 except 206 | write from the start |
/// | the whole | 206 | fail: no range was requested |
/// | a range that the program chose | 200–299 | write from the start |
/// | a range | 206 that starts at the offset, of the same version and size | append |
/// | a range | any other 206 | start over: request the whole |
/// | a range | 200–299 except 206 | start over with this response |
/// | a range | 416 of the same version, with the size that is already there and was unknown | the file is complete |
/// | a range | any other 416 | start over: request the whole |
/// | either | another status | reject |
///
/// If the program does not permit starting over, the download fails instead.
package struct ResumePlan: Hashable, Sendable {
    /// The number of valid bytes, at which the requested range starts.
    package private(set) var offset: Int64
    private let validator: ResumeData.Validator?
    private let total: Int64?
    private let startsOver: Bool
    /// Whether the request has a `Range` of its own, so that the file consists of that range.
    private var hasOwnRange = false

    /// Creates a plan that requests the whole file, or the range that the request already has.
    package init(hasOwnRange: Bool = false) {
        self.init(offset: 0, validator: nil, total: nil, startsOver: true)
        self.hasOwnRange = hasOwnRange
    }

    /// Creates a plan that requests the bytes from an offset on.
    ///
    /// If all bytes are there, the last one is requested again: the response shows whether the file is unchanged,
    /// whereas a range after the end would be an error.
    package init(offset: Int64, validator: ResumeData.Validator?, total: Int64?, startsOver: Bool) {
        self.offset = max(0, total.map { min(offset, max($0, 1) - 1) } ?? offset)
        self.validator = validator
        self.total = total
        self.startsOver = startsOver
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
        if let validator { fields[.ifRange] = validator.fieldValue }
        return fields
    }

    /// Returns the action for a response.
    package func action(for head: ResponseHead) -> Action {
        let status = head.status.code
        guard offset > 0 else {
            if status == 206, !hasOwnRange { return .fail(.wrongRange(head.headers.first(.contentRange))) }
            return (200...299).contains(status) ? .write : .reject
        }
        switch status {
        case 206: return partialAction(for: head)
        case 416:
            // If the size was known, the range was not after the end.
            guard let range = contentRange(of: head), range.bytes == nil, range.total == offset, total == nil,
                validator?.isContradicted(by: head) != true
            else { return startOver(.changed) }
            return .complete
        case 200...299:
            let failure = isSame(head) ? SessionError.ResumeFailure.rangesNotSupported : .changed
            return startsOver ? .write : .fail(failure)
        default: return .reject
        }
    }

    private func partialAction(for head: ResponseHead) -> Action {
        guard let range = contentRange(of: head), range.bytes?.lowerBound == offset,
            !head.hasContentCoding
        else { return startOver(.wrongRange(head.headers.first(.contentRange))) }
        if let total, let other = range.total, other != total { return startOver(.changed) }
        if validator?.isContradicted(by: head) == true { return startOver(.changed) }
        return .append(range)
    }

    private func startOver(_ failure: SessionError.ResumeFailure) -> Action {
        startsOver ? .startOver(failure) : .fail(failure)
    }

    private func contentRange(of head: ResponseHead) -> ContentRange? {
        head.headers.first(.contentRange).flatMap(ContentRange.init)
    }

    /// Whether the response has the same validator as the bytes.
    private func isSame(_ head: ResponseHead) -> Bool {
        switch validator {
        case .entityTag(let tag): head.headers.first(.eTag) == tag
        case .lastModified(let date): head.headers.first(.lastModified) == date
        case nil: false
        }
    }
}
