// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite struct SegmentPlanTests {
    @Test func `an idle worker takes half of the segment with the most bytes left`() {
        var plan = SegmentPlan(total: 100, minimum: 10)
        #expect(plan.begin(0, at: 0) == true)
        #expect(plan.begin(1) == 50..<100)
        #expect(plan.receive(30, 0) == .init(offset: 0, count: 30, end: nil))
        #expect(plan.begin(2) == 75..<100)
        #expect(plan.begin(3) == 63..<75)
        #expect(plan.begin(4) == 88..<100)
        #expect(plan.running.mapValues(\.left) == [0: 20, 1: 13, 2: 13, 3: 12, 4: 12])
        // 20 bytes can be divided, fewer cannot.
        #expect(plan.begin(5) == 40..<50)
        #expect(plan.begin(6) == nil)
    }

    @Test func `the bytes of a segment that stops are the next to be requested`() {
        var plan = SegmentPlan(total: 100, minimum: 10)
        #expect(plan.begin(0, at: 0) == true)
        #expect(plan.begin(1) == 50..<100)
        _ = plan.receive(20, 1)
        plan.stop(1)
        #expect(plan.begin(2) == 70..<100)
        #expect(plan.done.ranges == [50..<70])
    }

    @Test func `a response goes on after its segment if the bytes there are left`() {
        var plan = SegmentPlan(total: 100, minimum: 10)
        #expect(plan.begin(0, at: 0) == true)
        #expect(plan.begin(1) == 50..<100)
        plan.stop(1)
        #expect(plan.receive(60, 0) == .init(offset: 0, count: 60, end: nil))
        #expect(plan.receive(50, 0) == .init(offset: 60, count: 40, end: .cut))
        #expect(plan.isComplete)
    }

    @Test func `a response is cut where another segment begins, and where bytes are there`() {
        var plan = SegmentPlan(total: 100, done: ByteRanges([80..<90]), minimum: 10)
        #expect(plan.begin(0, at: 0) == true)
        #expect(plan.begin(1) == 90..<100)
        #expect(plan.begin(2) == 40..<80)
        #expect(plan.receive(60, 0) == .init(offset: 0, count: 40, end: .cut))
        #expect(plan.receive(40, 2) == .init(offset: 40, count: 40, end: .whole))
        #expect(plan.receive(9, 1).end == nil)
        #expect(!plan.isComplete)
        #expect(plan.receive(1, 1) == .init(offset: 99, count: 1, end: .whole))
        #expect(plan.isComplete)
    }

    @Test func `a response goes on over the bytes of segments that await theirs`() {
        var plan = SegmentPlan(total: 100, minimum: 10)
        #expect(plan.begin(0, at: 0) == true)
        #expect(plan.begin(1) == 50..<100)
        #expect(plan.begin(2) == 25..<50)
        #expect(plan.begin(3) == 75..<100)
        #expect(plan.receive(60, 0, waiting: [1, 2]) == .init(offset: 0, count: 60, end: nil, overtaken: [2, 1]))
        #expect(plan.receive(60, 0, waiting: [1]) == .init(offset: 60, count: 15, end: .cut))
        #expect(plan.receive(10, 1) == .init(offset: 0, count: 0, end: .cut))
        #expect(plan.running.keys.sorted() == [3])
    }

    @Test func `a response may be shorter than its segment, or longer`() {
        var plan = SegmentPlan(total: 100, done: ByteRanges([0..<10]), minimum: 10)
        #expect(plan.begin(1) == 10..<100)
        plan.limit(1, to: 40)
        #expect(plan.receive(30, 1) == .init(offset: 10, count: 30, end: .whole))
        #expect(plan.begin(2) == 40..<100)
        #expect(plan.begin(3) == 70..<100)
        plan.stop(3)
        plan.limit(2, to: 1000)
        #expect(plan.receive(60, 2) == .init(offset: 40, count: 60, end: .whole))
        #expect(plan.isComplete)
    }

    @Test func `no segment begins where bytes are there, or in an empty file`() {
        var plan = SegmentPlan(total: 100, done: ByteRanges([0..<50, 90..<200]), minimum: 10)
        #expect(plan.begin(0, at: 20) == false)
        #expect(plan.done.ranges == [0..<50, 90..<100])
        #expect(plan.begin(1) == 50..<90)
        #expect(plan.receive(5, 7) == .init(offset: 0, count: 0, end: .cut))
        var empty = SegmentPlan(total: 0, minimum: 10)
        #expect(empty.isComplete)
        #expect(empty.begin(0) == nil)
    }

    @Test func `ranges are joined, and their gaps are found`() throws {
        var ranges = ByteRanges([5..<7, 0..<2, 9..<9, 20..<30])
        #expect(ranges.ranges == [0..<2, 5..<7, 20..<30])
        #expect(ranges.prefix == 2)
        #expect(ranges.count == 14)
        #expect(ranges.gaps(in: 1..<25) == [2..<5, 7..<20])
        ranges.insert(2..<5)
        ranges.insert(6..<21)
        #expect(ranges.ranges == [0..<30])
        #expect(ranges.gaps(in: 0..<30) == [])
        #expect(ranges.within(10..<12).ranges == [10..<12])
        let bytes = try JSONEncoder().encode(ranges)
        #expect(try JSONDecoder().decode(ByteRanges.self, from: bytes) == ranges)
        let disordered = try JSONDecoder().decode(ByteRanges.self, from: Data("[[5,7],[0,6],[3,3]]".utf8))
        #expect(disordered.ranges == [0..<7])
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(ByteRanges.self, from: Data("[[7,5]]".utf8))
        }
    }

    /// Random events, compared with a list that has an owner for each byte.
    @Test(arguments: 0..<200) func `a random course brings each byte once`(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let total = Int64.random(in: 1...200, using: &generator)
        let start = Int64.random(in: 0..<total, using: &generator)
        var plan = SegmentPlan(
            total: total, done: ByteRanges([0..<start]), minimum: .random(in: 1...20, using: &generator))
        var isDone = (0..<total).map { $0 < start }
        #expect(plan.begin(0, at: start) == true)
        var last = 0
        var open: [Int: (next: Int64, end: Int64)] = [0: (start, total)]
        var waiting: [Int: Int64] = [:]
        while !plan.isComplete {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<3 where open.count < 6:
                last += 1
                if let range = plan.begin(last) {
                    #expect(range.allSatisfy { !isDone[Int($0)] })
                    open[last] = (range.lowerBound, range.upperBound)
                    if Bool.random(using: &generator) {
                        let end = Int64.random(in: range.lowerBound...(range.upperBound + 5), using: &generator)
                        plan.limit(last, to: end)
                        open[last]?.end = min(max(end, range.lowerBound), total)
                    } else {
                        waiting[last] = range.lowerBound
                    }
                } else {
                    // Nothing is left that no one brings, and no segment is large.
                    let left = plan.running.values.reduce(0) { $0 + $1.left }
                    #expect(left == isDone.count { !$0 })
                }
            case 3:
                guard let number = open.keys.sorted().randomElement(using: &generator) else { continue }
                plan.stop(number)
                open[number] = nil
            default:
                guard let number = open.keys.sorted().randomElement(using: &generator), let response = open[number]
                else { continue }
                let count = Int.random(in: 0...12, using: &generator)
                let receipt = plan.receive(count, number, waiting: Set(waiting.keys).subtracting([number]))
                #expect(receipt.count == 0 || receipt.offset == response.next)
                #expect(
                    receipt.count <= count && receipt.offset + Int64(receipt.count) <= max(response.end, receipt.offset)
                )
                for position in receipt.offset..<receipt.offset + Int64(receipt.count) {
                    #expect(!isDone[Int(position)])
                    isDone[Int(position)] = true
                }
                for other in receipt.overtaken {
                    #expect(waiting[other].map { (receipt.offset...).contains($0) } == true)
                    (open[other], waiting[other]) = (nil, nil)
                }
                waiting[number] = nil
                open[number]?.next += Int64(receipt.count)
                if receipt.end != nil { open[number] = nil } else { #expect(receipt.count == count) }
            }
            #expect(Set(plan.running.keys) == Set(open.keys))
            #expect(plan.done.count == isDone.count { $0 })
            // No two segments have a byte in common.
            var owned = Set<Int64>()
            for segment in plan.running.values {
                for position in segment.next..<segment.end { #expect(owned.insert(position).inserted == true) }
            }
            #expect(owned.allSatisfy { !isDone[Int($0)] })
        }
        #expect(isDone.allSatisfy { $0 })
    }
}

@Suite struct SegmentAnswerTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var status: Int
        var fields: HTTPFields
        var isReplaced: Bool
        var answer: SegmentAnswer
    }

    @Test(arguments: [
        Row("as requested", 206, ["Content-Range": "bytes 100-199/1000", "ETag": "\"1\""], .take(responseEnd: 200)),
        Row("without a validator", 206, ["Content-Range": "bytes 100-199/1000"], .take(responseEnd: 200)),
        Row("without a size", 206, ["Content-Range": "bytes 100-149/*"], .take(responseEnd: 150)),
        Row("longer", 206, ["Content-Range": "bytes 100-999/1000"], .take(responseEnd: 1000)),
        Row("starts earlier", 206, ["Content-Range": "bytes 99-199/1000"], .withoutRanges),
        Row("starts later", 206, ["Content-Range": "bytes 101-199/1000"], .withoutRanges),
        Row("malformed", 206, ["Content-Range": "bytes 100-99/1000"], .withoutRanges),
        Row("no range", 206, [:], .withoutRanges),
        Row("several ranges", 206, ["Content-Type": "multipart/byteranges; boundary=x"], .withoutRanges),
        Row("another size", 206, ["Content-Range": "bytes 100-199/1001"], .changed),
        Row("beyond the end", 206, ["Content-Range": "bytes 100-1000/*"], .changed),
        Row("another tag", 206, ["Content-Range": "bytes 100-199/1000", "ETag": "\"2\""], .changed),
        Row("another start and tag", 206, ["Content-Range": "bytes 0-199/1000", "ETag": "\"2\""], .changed),
        Row("a coding", 206, ["Content-Range": "bytes 100-199/1000", "Content-Encoding": "gzip"], .changed),
        Row("replaced", 206, ["Content-Range": "bytes 100-199/1000"], isReplaced: true, .withoutRanges),
        Row("the whole", 200, ["ETag": "\"1\""], .withoutRanges),
        Row("the whole without a tag", 200, [:], .withoutRanges),
        Row("another whole", 200, ["ETag": "\"2\""], .changed),
        Row("not satisfiable", 416, ["Content-Range": "bytes */1000"], .withoutRanges),
        Row("not satisfiable without a size", 416, [:], .withoutRanges),
        Row("shorter now", 416, ["Content-Range": "bytes */50"], .changed),
        Row("too many", 429, [:], .refused(isOverload: true)),
        Row("unavailable", 503, [:], .refused(isOverload: true)),
        Row("missing", 404, [:], .refused(isOverload: false)),
        Row("no content", 204, [:], .refused(isOverload: false)),
    ])
    func `each response has one answer`(_ row: Row) throws {
        var representation = Representation()
        representation.validator = .entityTag(WireText("\"1\""))
        representation.totalBytes = 1000
        let head = ResponseHead(status: .init(code: row.status), headers: row.fields, url: try url("http://a.example/"))
        let answer = SegmentAnswer(to: head, at: 100, of: 1000, representation, isReplaced: row.isReplaced)
        #expect(answer == row.answer)
    }
}

extension SegmentAnswerTests.Row {
    fileprivate init(
        _ name: String, _ status: Int, _ fields: KeyValuePairs<String, String>, isReplaced: Bool = false,
        _ answer: SegmentAnswer
    ) {
        var headers: HTTPFields = [:]
        for (name, value) in fields {
            if let name = HTTPField.Name(name) { headers.append(HTTPField(name: name, value: value)) }
        }
        self.init(testDescription: name, status: status, fields: headers, isReplaced: isReplaced, answer: answer)
    }
}

@Suite struct SegmentCountControllerTests {
    /// Speeds by number of segments, and the numbers that result from measuring them.
    @Test(arguments: [
        // Each connection has a limit of its own.
        ([1: 10.0, 2: 20, 4: 40, 8: 80], 8, [1, 2, 2, 4, 4, 8, 8, 8, 8, 8]),
        // The link is full with one.
        ([1: 10.0, 2: 10], 8, [1, 2, 2, 1, 1, 1, 1, 1]),
        // It is full with three.
        ([1: 10.0, 2: 20, 4: 30, 8: 30], 8, [1, 2, 2, 4, 4, 8, 8, 4, 4, 4]),
        ([1: 10.0, 2: 20, 3: 30], 3, [1, 2, 2, 3, 3, 3]),
        ([1: 10.0], 1, [1, 1, 1, 1]),
    ])
    func `the number grows as long as it adds speed`(speeds: [Int: Double], limit: Int, counts: [Int]) {
        var controller = SegmentCountController(limit: limit)
        var found: [Int] = []
        for _ in counts {
            _ = controller.measure(speeds[controller.count] ?? 0, running: controller.count)
            found.append(controller.count)
        }
        #expect(found == counts)
    }

    @Test func `it tries again when the speed has fallen, and waits for segments that have not begun`() {
        var controller = SegmentCountController(limit: 8)
        for _ in 0..<6 { _ = controller.measure(100, running: controller.count) }
        #expect(controller.count == 1)
        let isChanged = controller.measure(60, running: 1)
        #expect(!isChanged)
        let isRaised = controller.measure(40, running: 1)
        #expect(isRaised && controller.count == 2)
        let isMeasured = controller.measure(1000, running: 1)
        #expect(!isMeasured && controller.count == 2)
    }

    @Test func `it does not try again what servers refuse`() {
        var controller = SegmentCountController(limit: 8)
        for _ in 0..<4 { _ = controller.measure(Double(controller.count), running: controller.count) }
        #expect(controller.count == 4)
        let isSame = controller.settle(at: 4)
        let isReduced = controller.settle(at: 3)
        #expect(!isSame && isReduced && controller.count == 3)
        for speed in [3.0, 1, 0] { _ = controller.measure(speed, running: 3) }
        #expect(controller.count == 3)
    }
}

@Suite struct SegmentSourcesTests {
    private let sources: SegmentSources

    init() throws {
        sources = SegmentSources(
            try ["http://a.example/", "http://b.example/", "http://c.example/"].map { try url($0) },
            Representation(), limit: 2)
    }

    /// Begins as many segments as possible, and returns their servers.
    private func begin(_ sources: inout SegmentSources) -> [Int] {
        var begun: [Int] = []
        while let next = sources.next {
            sources.begin(next)
            begun.append(next)
        }
        return begun
    }

    @Test func `segments are spread over the servers, up to the limit of each`() {
        var sources = sources
        #expect(sources.limit == 6)
        #expect(begin(&sources) == [1, 2, 0, 1, 2])
        #expect(sources.running == 6)
    }

    @Test func `the URLs of a host share its limit`() throws {
        var sources = SegmentSources(
            try ["http://a.example/", "http://a.example/2", "http://b.example/", "http://a.example:80/3"].map {
                try url($0)
            },
            Representation(), limit: 3)
        #expect(sources.limit == 6)
        #expect(begin(&sources) == [1, 2, 3, 2, 2])
        #expect(sources.running == 6)
        // A host that refuses a segment has no more than its others, whatever their URLs.
        sources.end(3)
        sources.refuse(3, isOverload: true)
        #expect(sources.limit == 5)
        #expect(sources.next == nil)
        sources.end(0)
        #expect(begin(&sources) == [0])
        // Those of a URL that is not used further still count.
        sources.exclude(1)
        #expect(sources.limit == 5)
    }

    @Test func `a URL that never answered limits its host only if that is overloaded`() throws {
        let urls = try ["http://a.example/1", "http://a.example/2"].map { try url($0) }
        let none = SegmentSources(urls, Representation(), limit: 4)
        for (isOverload, number, hasAnswered, limit) in [
            (false, 1, false, 4), (true, 1, false, 3), (false, 1, true, 3), (false, 0, false, 3),
        ] {
            var sources = none
            #expect(begin(&sources) == [1, 0, 1])
            if hasAnswered { sources.accept(ResponseHead(status: .partialContent, url: urls[1]), from: 1) }
            sources.end(number)
            sources.refuse(number, isOverload: isOverload)
            #expect(sources.limit == limit)
        }
        var sources = none
        for _ in 0..<3 { sources.refuse(1, isOverload: false) }
        #expect(begin(&sources) == [0, 0, 0])
    }

    @Test func `a slow server is used last`() {
        var sources = sources
        sources.avoid(1)
        #expect(begin(&sources) == [2, 0, 2, 1, 1])
    }

    @Test func `a server that refuses a segment has no more than the others of it`() {
        var sources = sources
        #expect(begin(&sources) == [1, 2, 0, 1, 2])
        sources.end(1)
        sources.refuse(1, isOverload: true)
        #expect(sources.next == nil)
        #expect(sources.limit == 5)
    }

    @Test(arguments: [(0, 20), (64 << 10, 21), (1 << 20, 36)])
    func `a server that sends too little too often is not used further`(received: Int, permitted: Int) throws {
        var sources = sources
        let head = ResponseHead(status: .partialContent, url: try url("http://a.example/"))
        sources.receive(received, from: 0)
        for _ in 0..<permitted { sources.accept(head, from: 0, isShort: true) }
        for _ in 0..<100 { sources.accept(head, from: 0) }
        for number in [1, 2] { sources.exclude(number) }
        #expect(sources.next == 0)
        sources.accept(head, from: 0, isShort: true)
        #expect(sources.next == nil)
    }

    @Test func `a server whose responses end early too often is not used further`() {
        var sources = sources
        for number in [0, 2] { sources.exclude(number) }
        for _ in 0..<20 { sources.fail(1, hasBytes: true) }
        #expect(sources.next == 1)
        sources.fail(1, hasBytes: true)
        #expect(sources.next == nil)
    }

    @Test func `the digest that a part has must be that of the others`() throws {
        var sources = sources
        let name = try #require(HTTPField.Name("Repr-Digest"))
        let heads = try ([1, 2] as [UInt8]).map { byte in
            let digest = ContentDigest(.sha256, Data(repeating: byte, count: 32))
            return ResponseHead(
                status: .partialContent, headers: [name: digest.fieldValue], url: try url("http://a.example/"))
        }
        sources.accept(heads[0], from: 0)
        #expect(heads.map { sources.representation(0).isContradicted(by: $0, total: nil) } == [false, true])
        #expect(!sources.representation(1).isContradicted(by: heads[1], total: nil))
    }

    @Test func `a server that fails three times without a byte is not used further`() {
        var sources = sources
        for _ in 0..<2 { sources.fail(0) }
        sources.receive(1, from: 0)
        for _ in 0..<2 { sources.fail(0) }
        #expect(begin(&sources).contains(0))
        sources.end(0)
        sources.fail(0)
        #expect(sources.next == nil)
        sources.exclude(1)
        sources.end(1)
        #expect(sources.next == nil)
    }
}

@Suite struct UsualPaceTests {
    private static func pace(_ counts: [Int]) -> SegmentPace {
        var pace = SegmentPace()
        for count in counts {
            pace.receive(count)
            pace.measure()
        }
        return pace
    }

    @Test func `a segment with less than a tenth of the usual speed is found, also if it is the last one`() {
        var usual = UsualPace()
        let (fast, slow, new) = (Self.pace([100, 100, 100]), Self.pace([9, 4, 4]), Self.pace([0]))
        usual.measure([fast, fast, slow])
        #expect(usual.isMuchFaster(than: fast, patience: 3) == false)
        #expect(usual.isMuchFaster(than: new, patience: 3) == false)
        usual.measure([slow])
        #expect(usual.isMuchFaster(than: slow, patience: 3) == true)
        // Half of the usual speed was expected of those that follow.
        #expect(usual.isMuchFaster(than: slow, patience: 3) == false)
    }

    @Test func `a segment that has ended before it was measured counts once`() {
        var usual = UsualPace()
        var complete = SegmentPace()
        complete.receive(100)
        usual.end(complete)
        let waiting = Self.pace([0, 0, 0])
        usual.measure([waiting])
        #expect(usual.isMuchFaster(than: waiting, patience: 3) == true)
        usual = UsualPace()
        usual.end(complete)
        usual.measure([])
        usual.measure([waiting])
        #expect(usual.isMuchFaster(than: waiting, patience: 3) == false)
    }

    @Test func `a single segment is not compared`() {
        var usual = UsualPace()
        usual.measure([Self.pace([100])])
        #expect(usual.isMuchFaster(than: Self.pace([0, 0, 0]), patience: 3) == false)
    }
}
