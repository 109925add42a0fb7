// SPDX-License-Identifier: MIT

package import ANHTTP

/// The bytes of a file that are there, those that running requests will bring, and those that are left.
///
/// Each running segment receives the bytes from `next` to `end`, which moves:
///
/// | event | change |
/// |---|---|
/// | a worker is idle, and bytes are left that no segment will bring | it takes the first such gap |
/// | a worker is idle, and no bytes are left | it takes the second half of the segment with the most bytes to come |
/// | a segment stops | its bytes are left |
/// | a segment is at its end, its response goes on, and the following bytes are left | the segment goes on |
/// | the same, and the following bytes are those of a segment that waits | the segment goes on, and the other is over |
/// | a piece is wrong, and it is unknown who sent the wrong bytes | one segment receives it again, undivided |
/// | that segment stops within the piece | the piece is begun anew; after the third time, it may be divided |
///
/// No byte belongs to two segments, and no segment receives bytes that are there. Segments are divided between pieces
/// where that leaves enough for each.
package struct SegmentPlan: Hashable, Sendable {
    /// The size of the file in bytes.
    package let total: Int64
    /// The smallest number of bytes of a part into which a segment is divided.
    private let minimum: Int64
    /// The length of the pieces that have digests; `nil` if there are none.
    private let pieceLength: Int64?
    /// The pieces that one segment receives from beginning to end, and how often they may still be begun anew.
    private var undivided: [Range<Int64>: Int] = [:]
    /// The bytes that are there.
    package private(set) var done: ByteRanges
    /// The running segments, by number.
    package private(set) var running: [Int: Segment] = [:]

    /// A running segment.
    package struct Segment: Hashable, Sendable {
        /// The position of the next byte.
        package fileprivate(set) var next: Int64
        /// The position after the last byte.
        package fileprivate(set) var end: Int64
        /// The position after the last byte of its response, as far as that is known.
        package fileprivate(set) var responseEnd: Int64

        /// The number of bytes to come.
        package var left: Int64 { end - next }
    }

    /// Creates the plan of a file of which some bytes may be there. Ranges beyond the end are ignored.
    package init(total: Int64, done: ByteRanges = ByteRanges(), minimum: Int64, pieceLength: Int64? = nil) {
        self.total = max(0, total)
        self.minimum = max(1, minimum)
        self.pieceLength = pieceLength
        self.done = done.within(0..<self.total)
    }

    /// Whether all bytes are there.
    package var isComplete: Bool { done.count == total }

    /// Begins the segment of a response that goes from an offset to the end of the file, and that ends where bytes are
    /// there. Returns `false` if the byte at the offset is there.
    package mutating func begin(_ number: Int, at offset: Int64) -> Bool {
        guard let gap = free.first(where: { $0.contains(offset) }) else { return false }
        running[number] = Segment(next: offset, end: gap.upperBound, responseEnd: total)
        return true
    }

    /// Begins a segment, and returns the bytes to request; `nil` if no bytes are left, and no segment can be divided.
    package mutating func begin(_ number: Int) -> Range<Int64>? {
        if let gap = free.first {
            running[number] = Segment(next: gap.lowerBound, end: gap.upperBound, responseEnd: gap.upperBound)
            return gap
        }
        let largest = running.max { ($0.value.left, $1.key) < ($1.value.left, $0.key) }
        guard let (other, segment) = largest, segment.left >= 2 * minimum else { return nil }
        let middle = division(of: segment)
        guard undividedPiece(around: middle) == nil else { return nil }
        running[other]?.end = middle
        running[number] = Segment(next: middle, end: segment.end, responseEnd: segment.end)
        return middle..<segment.end
    }

    /// The position between two pieces that is nearest to the middle of a segment, if both parts are large enough, or
    /// else the middle.
    private func division(of segment: Segment) -> Int64 {
        let middle = segment.end - segment.left / 2
        guard let pieceLength else { return middle }
        let before = middle / pieceLength * pieceLength
        return [before, before.addingClamped(pieceLength)]
            .filter { $0 - segment.next >= minimum && segment.end - $0 >= minimum }
            .min { abs($0 - middle) < abs($1 - middle) } ?? middle
    }

    private func undividedPiece(around position: Int64) -> Range<Int64>? {
        undivided.keys.first { $0.lowerBound < position && position < $0.upperBound }
    }

    /// Notes that the response of a segment ends before a position, which may be before or after the end of the
    /// segment.
    package mutating func limit(_ number: Int, to responseEnd: Int64) {
        guard var segment = running[number] else { return }
        segment.responseEnd = min(max(responseEnd, segment.next), total)
        segment.end = min(segment.end, segment.responseEnd)
        running[number] = segment
    }

    /// Notes that a number of bytes of a segment's response have arrived. Those after the end of the segment are not
    /// part of the receipt.
    ///
    /// - Parameter waiting: The segments that await their responses, and whose bytes this one may bring.
    package mutating func receive(_ count: Int, _ number: Int, waiting: Set<Int> = []) -> Receipt {
        guard var segment = running[number] else { return Receipt(offset: 0, count: 0, end: .cut) }
        let offset = segment.next
        var rest = Int64(count)
        var overtaken: [Int] = []
        while true {
            let taken = min(rest, segment.left)
            if taken > 0 { done.insert(segment.next..<segment.next + taken) }
            segment.next += taken
            rest -= taken
            running[number] = segment
            guard segment.left == 0, segment.responseEnd > segment.next else { break }
            if let other = waiting.first(where: { running[$0]?.next == segment.next }) {
                running[other] = nil
                overtaken.append(other)
            }
            guard let gap = free.first(where: { $0.lowerBound == segment.next }) else { break }
            segment.end = min(gap.upperBound, segment.responseEnd)
        }
        let end: Receipt.End? =
            segment.left > 0 ? nil : segment.responseEnd == segment.next && rest == 0 ? .whole : .cut
        let givenUp = end == nil ? nil : stop(number)
        return Receipt(
            offset: offset, count: Int(segment.next - offset), end: end, givenUp: givenUp, overtaken: overtaken)
    }

    /// The use of received bytes.
    package struct Receipt: Hashable, Sendable {
        /// The position of the first byte.
        package var offset: Int64
        /// The number of bytes that belong to the segment, from the first one on.
        package var count: Int
        /// Whether the segment is over; `nil` if it goes on.
        package var end: End?
        /// The bytes that are requested again, because the segment is over within an undivided piece.
        package var givenUp: Range<Int64>?
        /// The segments that are over, because their bytes belong to this one now.
        package var overtaken: [Int]

        package init(
            offset: Int64, count: Int, end: End?, givenUp: Range<Int64>? = nil, overtaken: [Int] = []
        ) {
            (self.offset, self.count, self.end) = (offset, count, end)
            (self.givenUp, self.overtaken) = (givenUp, overtaken)
        }

        /// The end of a segment.
        package enum End: Hashable, Sendable {
            /// The response is complete, too.
            case whole
            /// More bytes of the response may follow, which belong to other segments.
            case cut
        }
    }

    /// Ends a segment, whose remaining bytes are left.
    ///
    /// - Returns: The bytes of an undivided piece that the segment has received and that are left as well.
    @discardableResult
    package mutating func stop(_ number: Int) -> Range<Int64>? {
        guard let segment = running.removeValue(forKey: number),
            let piece = undividedPiece(around: segment.next), let attempts = undivided[piece]
        else { return nil }
        undivided[piece] = attempts > 1 ? attempts - 1 : nil
        let givenUp = piece.lowerBound..<segment.next
        done.remove(givenUp)
        return givenUp
    }

    /// Notes that the bytes of a piece are wrong, and must be received again.
    ///
    /// - Parameter isUndivided: Whether by a single segment.
    package mutating func restart(_ piece: Range<Int64>, isUndivided: Bool) {
        done.remove(piece)
        if isUndivided { undivided[piece] = 3 }
    }

    /// The bytes that are neither there nor to come.
    private var free: [Range<Int64>] {
        var taken = done
        for segment in running.values { taken.insert(segment.next..<segment.end) }
        return taken.gaps(in: 0..<total)
    }
}

/// A set of byte positions, as ranges in ascending order that do not touch each other.
package struct ByteRanges: Codable, Hashable, Sendable {
    /// The ranges, none of which is empty.
    package private(set) var ranges: [Range<Int64>] = []

    /// Creates a set of ranges, which may overlap.
    package init(_ ranges: [Range<Int64>] = []) {
        for range in ranges { insert(range) }
    }

    package init(from decoder: any Decoder) throws {
        let ranges = ByteRanges(try decoder.singleValueContainer().decode([Range<Int64>].self))
        // The number of positions is that of a file at most.
        self = ranges.within(0..<Int64.max)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(ranges)
    }

    /// Whether there is no position.
    package var isEmpty: Bool { ranges.isEmpty }

    /// The number of positions.
    package var count: Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }

    /// The number of positions from 0 on without a gap.
    package var prefix: Int64 { ranges.first.map { $0.lowerBound == 0 ? $0.upperBound : 0 } ?? 0 }

    /// Adds a range.
    package mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        var merged = range
        let first = ranges.partitioningIndex { $0.upperBound >= range.lowerBound }
        var last = first
        while last < ranges.count, ranges[last].lowerBound <= range.upperBound {
            merged = min(merged.lowerBound, ranges[last].lowerBound)..<max(merged.upperBound, ranges[last].upperBound)
            last += 1
        }
        ranges.replaceSubrange(first..<last, with: [merged])
    }

    /// Removes a range.
    package mutating func remove(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        let last = ranges.last?.upperBound ?? 0
        self = ByteRanges(
            within(0..<range.lowerBound).ranges + within(range.upperBound..<max(last, range.upperBound)).ranges)
    }

    /// Whether all positions of a range are in the set.
    package func contains(_ range: Range<Int64>) -> Bool {
        let index = ranges.partitioningIndex { $0.upperBound >= range.upperBound }
        return range.isEmpty || index < ranges.count && ranges[index].lowerBound <= range.lowerBound
    }

    /// The positions that are also in a range.
    package func within(_ range: Range<Int64>) -> ByteRanges {
        ByteRanges(ranges.map { $0.clamped(to: range) })
    }

    /// The ranges of the positions in a range that are not in the set.
    package func gaps(in range: Range<Int64>) -> [Range<Int64>] {
        var (gaps, next): ([Range<Int64>], Int64) = ([], range.lowerBound)
        for taken in within(range).ranges {
            if next < taken.lowerBound { gaps.append(next..<taken.lowerBound) }
            next = taken.upperBound
        }
        if next < range.upperBound { gaps.append(next..<range.upperBound) }
        return gaps
    }
}

extension Array {
    /// The index of the first element that satisfies a predicate, which all later elements satisfy as well.
    fileprivate func partitioningIndex(where isAfter: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// The decision about the response to a request for a segment.
///
/// | response | decision |
/// |---|---|
/// | 206 of the same ``Representation`` that starts where the segment does | take it, up to the end that it announces |
/// | 206 that starts elsewhere, without a range, with several, or replaced by an interceptor | the server has no ranges |
/// | 200 or 203 with another validator, 206 of another representation, 416 with another validator or size | changed |
/// | any other 200, 203 or 416 | the server has no ranges |
/// | 429, 503 | the server refuses because of its load |
/// | any other status | the server refuses |
package enum SegmentAnswer: Hashable, Sendable {
    /// The body belongs to the segment; it ends before this position.
    case take(responseEnd: Int64)
    /// The server sends no ranges of the file.
    case withoutRanges
    /// The server rejects the request: because of its load, such as the number of connections, if `isOverload`.
    case refused(isOverload: Bool)
    /// The resource has changed.
    case changed

    /// Decides about the response to a request for the bytes from an offset on.
    ///
    /// - Parameters:
    ///   - total: The size of the file.
    ///   - isReplaced: Whether an interceptor has replaced the body, so that its bytes are not those of the range.
    package init(
        to head: ResponseHead, at offset: Int64, of total: Int64, _ representation: Representation,
        isReplaced: Bool = false
    ) {
        let range = head.headers.first(.contentRange).flatMap(ContentRange.init)
        let isOther = representation.validator?.isContradicted(by: head) == true
        switch head.status.code {
        case 206:
            guard let range, let bytes = range.bytes, bytes.lowerBound == offset, !isReplaced else {
                self = isOther ? .changed : .withoutRanges
                return
            }
            let isChanged = representation.isContradicted(by: head, total: range.total ?? total)
            // A position after the end of the file is not one of the file.
            self = isChanged || bytes.upperBound >= total ? .changed : .take(responseEnd: bytes.upperBound + 1)
        case 200, 203: self = isOther ? .changed : .withoutRanges
        case 416: self = isOther || range?.total ?? total != total ? .changed : .withoutRanges
        case let status: self = .refused(isOverload: status == 429 || status == 503)
        }
    }
}
