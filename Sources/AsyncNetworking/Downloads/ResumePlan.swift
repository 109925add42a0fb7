// SPDX-License-Identifier: MIT

import ANCache
package import ANHTTP
import ANSerialization
package import HTTPTypes

/// A decision procedure for resuming a download: the header fields to send, and the action for each response.
///
/// | requested | response | action |
/// |---|---|---|
/// | either, with bytes after a gap | one with the whole of the same ``Representation`` | write from the start; the others stay |
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
    private var representation: Representation
    private let startsOver: Bool
    /// Whether the content is stored as received, with its content codings, even if it is the whole.
    private let isIdentity: Bool
    /// Whether there are bytes after a gap, which stay if a response with the whole is of the same representation.
    private var hasParts: Bool
    private var digests: ExpectedDigests
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
    package init(
        offset: Int64, of representation: Representation, startsOver: Bool, isIdentity: Bool = true,
        hasParts: Bool = false, digests: ExpectedDigests = .none
    ) {
        self.offset = max(0, representation.totalBytes.map { min(offset, max($0, 1) - 1) } ?? offset)
        self.representation = representation
        self.startsOver = startsOver
        self.isIdentity = isIdentity
        (self.hasParts, self.digests) = (hasParts, digests)
    }

    /// Requests the whole after a response that does not continue the bytes that are there. The digest of the whole then says
    /// nothing of them any more.
    package mutating func startOver(hasParts: Bool) {
        (offset, self.hasParts) = (0, hasParts)
        if digests == .whole { digests = .none }
    }

    /// Continues with the bytes of another representation, whose whole was received in place of what was requested.
    package mutating func replaceRepresentation(by other: Representation) {
        representation = other
    }

    /// The action for a response.
    package enum Action: Hashable, Sendable {
        /// Writes the body as the whole file.
        case write
        /// Writes the body as the whole file, in which the bytes after a gap stay.
        case writeKeepingParts
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
            if status == 206, !hasOwnRange, !isWhole(head.contentRange) {
                return .fail(.wrongRange(head.headers.first(.contentRange)))
            }
            guard (200...299).contains(status) else { return .reject }
            let write = writeAction(for: head, isReplaced)
            return hasParts && write == .write && !startsOver ? .fail(.changed) : write
        }
        switch status {
        case 206: return partialAction(for: head, isReplaced)
        case 416:
            // If the size was known, the range was not after the end.
            guard let range = head.contentRange, range.bytes == nil, range.total == offset,
                representation.totalBytes == nil, representation.validator?.isContradicted(by: head) != true
            else { return startOver(.changed) }
            return .complete
        case 200, 203:
            let isSame = representation.validator?.isConfirmed(by: head) == true
            guard startsOver else { return .fail(isSame ? .rangesNotSupported : .changed) }
            // The whole is requested without the restriction to no coding, as it was at first.
            return isIdentity || !head.hasContentCoding ? writeAction(for: head, isReplaced) : .startOver(.changed)
        default: return .reject
        }
    }

    private func partialAction(for head: ResponseHead, _ isReplaced: Bool) -> Action {
        let range = head.contentRange
        let wrong = SessionError.ResumeFailure.wrongRange(head.headers.first(.contentRange))
        if startsOver, isWhole(range), isIdentity || !head.hasContentCoding {
            return writeAction(for: head, isReplaced)
        }
        guard let range, range.bytes?.lowerBound == offset, !isReplaced else { return startOver(wrong) }
        if representation.isContradicted(by: head, total: range.total) { return startOver(.changed) }
        return .append(range)
    }

    private func writeAction(for head: ResponseHead, _ isReplaced: Bool) -> Action {
        hasParts && !isReplaced && representation.isConfirmed(by: head, digests) ? .writeKeepingParts : .write
    }

    /// Whether a range is that of the whole file.
    private func isWhole(_ range: ContentRange?) -> Bool {
        guard let range, let bytes = range.bytes, let total = range.total else { return false }
        return bytes.lowerBound == 0 && bytes.upperBound == total - 1
    }

    private func startOver(_ failure: SessionError.ResumeFailure) -> Action {
        startsOver ? .startOver(failure) : .fail(failure)
    }
}

/// The digests that the program expects of a file, which identify its representation without a validator.
package enum ExpectedDigests: Hashable, Sendable {
    case none
    /// That of the whole. If it is wrong, all bytes are lost: those of a response with another validator are not mixed with
    /// the earlier ones.
    case whole
    /// Those of pieces, of which the wrong ones are received again.
    case pieces
}

/// The representation that the bytes of a file belong to (RFC 9110 §3.2), as far as the responses so far have told.
///
/// A later response either continues it or contradicts it; what a response does not say is not a contradiction, because
/// the server has evaluated `If-Range`, and may omit the other fields (RFC 9110 §15.3.7).
///
/// | known | contradicted by a response with |
/// |---|---|
/// | a strong validator | another one, compared byte by byte |
/// | the size of the whole | another one in `Content-Range` |
/// | the content codings | others, in another order or of another number |
/// | a digest of the server | another `Repr-Digest` of the same algorithm |
package struct Representation: Codable, Hashable, Sendable {
    /// The strong validator; `nil` if only digests identify the representation.
    package var validator: Validator?
    /// The size of the whole in bytes; `nil` if the server did not send it.
    package var totalBytes: Int64?
    /// The content codings of the bytes, in the order in which they were applied.
    package var codings: [String] = []
    /// The digests of the whole that the server sent.
    package var digests: [ContentDigest] = []
    /// The request's fields that select among representations; `nil` if they are unknown.
    private var selection: Selection?

    /// Creates a representation of which nothing is known.
    package init() {}

    /// Creates the representation of a response that contains the whole, whose bytes are stored as received.
    ///
    /// - Parameters:
    ///   - fields: The header fields of the request with those of the session.
    ///   - sensitive: The names of the fields of which nothing is stored.
    package init(_ head: ResponseHead, to fields: HTTPFields, sensitive: Set<HTTPField.Name> = []) {
        validator = Validator(of: head)
        totalBytes = head.contentLength
        codings = head.headers.contentCodings
        // The content of a response with the whole is the representation (RFC 9530 §2, appendix A).
        digests = Array(Set(head.headers.representationDigests + head.headers.contentDigests))
            .sorted { $0.description < $1.description }
        selection = Selection(by: head.headers, of: fields, sensitive: sensitive)
    }

    /// Whether a later response can be identified as the same representation, or verified by a digest of the server.
    package var isVerifiable: Bool { validator != nil || !digests.isEmpty }

    /// Whether a request with these fields selects this representation, if the server has it.
    ///
    /// An entity tag is unique among all representations of a resource (RFC 9110 §8.8.3), and the server compares it;
    /// the date of the last modification is the same for representations in several languages or formats.
    package func isSelected(by fields: HTTPFields) -> Bool {
        if case .entityTag = validator { return true }
        return selection?.matches(fields) ?? true
    }

    /// Whether a response with the whole has this representation, as far as its validator or the program's digests show.
    func isConfirmed(by head: ResponseHead, _ digests: ExpectedDigests) -> Bool {
        if let length = head.contentLength, length != totalBytes { return false }
        if digests == .pieces { return true }
        // A response with the whole has no coding if it has no field for it.
        guard head.headers.contentCodings == codings, !isContradicted(by: head, total: nil) else { return false }
        return digests == .whole || validator?.isConfirmed(by: head) == true
    }

    /// Whether a response with a part belongs to another representation.
    package func isContradicted(by head: ResponseHead, total: Int64?) -> Bool {
        if validator?.isContradicted(by: head) == true { return true }
        if let totalBytes, let total, total != totalBytes { return true }
        if head.headers.contains(.contentEncoding), head.headers.contentCodings != codings { return true }
        return head.headers.representationDigests.contains { other in
            digests.contains { $0.algorithm == other.algorithm && $0.value != other.value }
        }
    }

    /// Adds what a response with a part tells about the whole.
    package mutating func learn(from head: ResponseHead, total: Int64?) {
        if let total { totalBytes = total }
        digests = Array(Set(digests + head.headers.representationDigests)).sorted { $0.description < $1.description }
    }

    /// A strong validator (RFC 9110 §8.8.1): responses with the same one are identical byte for byte.
    package enum Validator: Codable, Hashable, Sendable {
        /// The value of `ETag`, with its quotation marks.
        case entityTag(WireText)
        /// The value of `Last-Modified`, as received.
        case lastModified(WireText)
    }

    /// The fields of a request that select among representations: those of content negotiation, and those that `Vary`
    /// names.
    ///
    /// Instead of their values, which may be secrets of the session, only a checksum of them is stored. Of sensitive
    /// fields, whose values may be short enough to be guessed, nothing is. If `Vary` names one of them, or `*`, it is
    /// not known whether a request selects the same representation, and none does.
    private struct Selection: Codable, Hashable {
        /// The names in lower case.
        let names: [String]
        let salt: CacheSalt
        let checksum: UInt64

        init(by headers: HTTPFields, of fields: HTTPFields, sensitive: Set<HTTPField.Name>) {
            let varying = headers[values: .vary].flatMap { $0.split(at: ",") }.map { $0.trimmingBlanks.lowercased() }
            let unknown = Set(["authorization", "cookie", "*"]).union(sensitive.map(\.canonicalName))
            let isKnown = unknown.isDisjoint(with: varying) && varying.count <= Self.mostFields
            // The result of `Accept-Encoding` is known.
            names = Set(["accept", "accept-charset", "accept-language"] + varying.prefix(Self.mostFields))
                .subtracting(["accept-encoding", ""]).subtracting(unknown)
                .sorted()
            salt = CacheSalt()
            // No fields have the checksum 0.
            checksum = isKnown ? Self.checksum(names, fields, salt) : 0
        }

        func matches(_ fields: HTTPFields) -> Bool { checksum == Self.checksum(names, fields, salt) }

        private static func checksum(_ names: [String], _ fields: HTTPFields, _ salt: CacheSalt) -> UInt64 {
            salt.checksum(
                of: names.map { HTTPField.Name($0).map { fields[values: $0].joined(separator: ", ") } ?? "" })
        }

        private static let mostFields = 64
    }
}

extension Representation.Validator {
    /// Creates the strong validator of a response; `nil` if it has no strong one.
    ///
    /// A weak entity tag identifies equivalent versions, not identical bytes. A modification date is strong only if it
    /// is at least a second before the response's `Date`, because the file may change twice within a second (RFC 9110
    /// §8.8.2.2).
    package init?(of head: ResponseHead) {
        if let tag = head.headers.first(.eTag) {
            guard Self.isStrong(tag) else { return nil }
            self = .entityTag(WireText(tag))
        } else if let modified = head.headers.first(.lastModified), let date = head.headers.first(.date),
            let moment = HTTPDate(date, now: 0), let modification = HTTPDate(modified, now: moment.seconds),
            modification.seconds < moment.seconds
        {
            self = .lastModified(WireText(modified))
        } else {
            return nil
        }
    }

    /// Whether a tag is strong and known exactly: a replacement character stands for bytes that are not UTF-8.
    private static func isStrong(_ tag: String) -> Bool {
        tag.utf8.count >= 2 && tag.utf8.first == UInt8(ascii: "\"") && tag.utf8.last == UInt8(ascii: "\"")
            && !tag.unicodeScalars.contains("\u{FFFD}")
    }

    /// The value of `If-Range`.
    var fieldValue: String {
        switch self {
        case .entityTag(let tag): tag.text
        case .lastModified(let date): date.text
        }
    }

    /// The value of the validator's field in a response.
    private func other(in head: ResponseHead) -> WireText? {
        switch self {
        case .entityTag: head.headers.first(.eTag).map { WireText($0) }
        case .lastModified: head.headers.first(.lastModified).map { WireText($0) }
        }
    }

    /// Whether a response has the same validator.
    func isConfirmed(by head: ResponseHead) -> Bool { other(in: head).map { $0 == WireText(fieldValue) } ?? false }

    /// Whether a response has another validator. A response without the field counts as the same version, because the
    /// server has evaluated `If-Range`.
    func isContradicted(by head: ResponseHead) -> Bool { other(in: head).map { $0 != WireText(fieldValue) } ?? false }
}
