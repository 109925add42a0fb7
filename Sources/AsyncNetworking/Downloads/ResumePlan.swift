// SPDX-License-Identifier: MIT

package import ANHTTP
package import HTTPTypes

/// How a download goes on, and what it makes of the answer.
///
/// | asked for | answered by | then |
/// |---|---|---|
/// | all | 200 to 299 but 206 | write from the start |
/// | all | 206 | fail: nobody has asked for a part |
/// | a part | 206 that begins where it should, of the same version and size | append |
/// | a part | any other 206 | start over: ask for all |
/// | a part | 200 to 299 but 206 | start over with this response |
/// | a part | 416 of the size that is there already | it was complete |
/// | a part | any other 416 | start over: ask for all |
/// | anything | another status | reject |
///
/// Where the program does not want to start over, that is a failure instead.
package struct ResumePlan: Hashable, Sendable {
    /// How many bytes there are.
    package private(set) var offset: Int64
    private let validator: ResumeData.Validator?
    private let total: Int64?
    private let startsOver: Bool

    /// Creates the plan to download all.
    package init() {
        self.init(offset: 0, validator: nil, total: nil, startsOver: true)
    }

    /// Creates the plan to go on after so many bytes.
    ///
    /// Of a file that is complete the last byte is asked for again: that says whether it is still the same, where a range
    /// behind the end would be an error.
    package init(offset: Int64, validator: ResumeData.Validator?, total: Int64?, startsOver: Bool) {
        self.offset = max(0, total.map { min(offset, max($0, 1) - 1) } ?? offset)
        self.validator = validator
        self.total = total
        self.startsOver = startsOver
    }

    /// What to do with a response.
    package enum Action: Hashable, Sendable {
        /// Its body is the whole.
        case write
        /// Its body comes after the bytes that are there: so many, up to the end of this range.
        case append(ContentRange)
        /// All bytes were there; it has none.
        case complete
        /// Ask again, for all, for this reason.
        case startOver(SessionError.ResumeProblem)
        /// It cannot be used.
        case fail(SessionError.ResumeProblem)
        /// It is no success.
        case reject
    }

    /// The fields to ask with; none to ask for all. RFC 9110 §14.2 and §13.1.5.
    package var fields: HTTPFields {
        guard offset > 0 else { return [:] }
        var fields: HTTPFields = [.range: "bytes=\(offset)-"]
        if let validator { fields[.ifRange] = validator.fieldValue }
        return fields
    }

    /// What to do with a response.
    package func action(for head: ResponseHead) -> Action {
        let status = head.status.code
        guard offset > 0 else {
            if status == 206 { return .fail(.wrongRange(head.headers.first(.contentRange))) }
            return (200...299).contains(status) ? .write : .reject
        }
        switch status {
        case 206: return partialAction(for: head)
        case 416:
            guard let range = contentRange(of: head), range.bytes == nil, range.total == offset else {
                return startOver(.changed)
            }
            return .complete
        case 200...299:
            let problem = isSame(head) ? SessionError.ResumeProblem.rangesNotSupported : .changed
            return startsOver ? .write : .fail(problem)
        default: return .reject
        }
    }

    private func partialAction(for head: ResponseHead) -> Action {
        guard let range = contentRange(of: head), range.bytes?.lowerBound == offset,
            head.headers.first(.contentEncoding) ?? "identity" == "identity"
        else { return startOver(.wrongRange(head.headers.first(.contentRange))) }
        if let total, let other = range.total, other != total { return startOver(.changed) }
        if validator?.isContradicted(by: head) == true { return startOver(.changed) }
        return .append(range)
    }

    private func startOver(_ problem: SessionError.ResumeProblem) -> Action {
        startsOver ? .startOver(problem) : .fail(problem)
    }

    private func contentRange(of head: ResponseHead) -> ContentRange? {
        head.headers.first(.contentRange).flatMap(ContentRange.init)
    }

    /// Whether the response shows the validator that the bytes have.
    private func isSame(_ head: ResponseHead) -> Bool {
        switch validator {
        case .entityTag(let tag): head.headers.first(.eTag) == tag
        case .lastModified(let date): head.headers.first(.lastModified) == date
        case nil: false
        }
    }
}
