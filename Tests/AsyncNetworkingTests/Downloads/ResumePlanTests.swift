// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct ResumePlanTests {
    private static let tag = Representation.Validator.entityTag("\"1\"")
    private static let date = Representation.Validator.lastModified("Sun, 06 Nov 1994 08:49:37 GMT")

    private static func head(_ status: Int, _ headers: HTTPFields = [:]) throws -> ResponseHead {
        ResponseHead(status: .init(code: status), headers: headers, url: try url("http://a.example/"))
    }

    private static func representation(
        _ validator: Representation.Validator? = tag, total: Int64? = 1000
    ) -> Representation {
        var representation = Representation()
        representation.validator = validator
        representation.totalBytes = total
        return representation
    }

    private static func plan(
        _ offset: Int64 = 400, _ validator: Representation.Validator? = tag, total: Int64? = 1000,
        startsOver: Bool = true
    ) -> ResumePlan {
        ResumePlan(offset: offset, of: representation(validator, total: total), startsOver: startsOver)
    }

    // MARK: Requests

    @Test(arguments: [(Int64.min, Int64.max), (0, 9), (-1, -1), (.max, .min), (5, 0)])
    func `implausible sizes request the whole, or a range within them`(offset: Int64, total: Int64) {
        let plan = ResumePlan(offset: offset, of: Self.representation(nil, total: total), startsOver: true)
        #expect(plan.offset == 0)
        #expect(plan.fields == [:])
    }

    @Test func `the rest is requested with If-Range`() {
        #expect(ResumePlan().fields == [:])
        #expect(Self.plan(0).fields == [:])
        #expect(Self.plan().fields == [.range: "bytes=400-", .ifRange: "\"1\""])
        #expect(Self.plan(400, Self.date).fields[.ifRange] == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(Self.plan(400, nil).fields == [.range: "bytes=400-"])
    }

    @Test func `of a complete file, the last byte is requested again`() {
        #expect(Self.plan(1000).fields[.range] == "bytes=999-")
        #expect(Self.plan(1001).fields[.range] == "bytes=999-")
        #expect(Self.plan(1000, total: nil).fields[.range] == "bytes=1000-")
        #expect(Self.plan(1, total: 0).fields == [:])
    }

    // MARK: Responses

    private static let rest: HTTPFields = [.contentRange: "bytes 400-999/1000"]

    @Test func `the rest is appended`() throws {
        let range = try #require(ContentRange("bytes 400-999/1000"))
        #expect(Self.plan().action(for: try Self.head(206, Self.rest)) == .append(range))
        #expect(Self.plan().action(for: try Self.head(206, Self.rest + [.eTag: "\"1\""])) == .append(range))
        let unknown = try #require(ContentRange("bytes 400-999/*"))
        #expect(Self.plan().action(for: try Self.head(206, [.contentRange: "bytes 400-999/*"])) == .append(unknown))
        // Less than the requested range is accepted as a part.
        let less = try #require(ContentRange("bytes 400-500/1000"))
        #expect(Self.plan().action(for: try Self.head(206, [.contentRange: "bytes 400-500/1000"])) == .append(less))
    }

    struct Surprise: Sendable, CustomTestStringConvertible {
        var status: Int
        var headers: HTTPFields
        var failure: SessionError.ResumeFailure
        var validator: Representation.Validator? = ResumePlanTests.tag
        /// Whether this response contains the whole file.
        var isWhole = false

        var testDescription: String { "\(status) \(headers.map { "\($0.name): \($0.value)" })" }
    }

    private static let surprises: [Surprise] = [
        Surprise(status: 206, headers: [:], failure: .wrongRange(nil)),
        Surprise(status: 206, headers: [.contentRange: "nonsense"], failure: .wrongRange("nonsense")),
        Surprise(
            status: 206, headers: [.contentRange: "bytes 0-999/1000"], failure: .wrongRange("bytes 0-999/1000"),
            isWhole: true),
        Surprise(
            status: 206, headers: [.contentRange: "bytes 401-999/1000"], failure: .wrongRange("bytes 401-999/1000")),
        Surprise(status: 206, headers: [.contentRange: "bytes */1000"], failure: .wrongRange("bytes */1000")),
        Surprise(status: 206, headers: rest + [.contentEncoding: "gzip"], failure: .changed),
        Surprise(status: 206, headers: [.contentRange: "bytes 400-1999/2000"], failure: .changed),
        Surprise(status: 206, headers: rest + [.eTag: "\"2\""], failure: .changed),
        Surprise(status: 206, headers: rest + [.eTag: "W/\"1\""], failure: .changed),
        Surprise(
            status: 206, headers: rest + [.lastModified: "Mon, 07 Nov 1994 08:49:37 GMT"], failure: .changed,
            validator: date),
        Surprise(status: 416, headers: [.contentRange: "bytes */1000"], failure: .changed),
        // The file of 1000 bytes has shrunk to those that are there, and the server has ignored `If-Range`.
        Surprise(status: 416, headers: [.contentRange: "bytes */400"], failure: .changed),
        Surprise(status: 416, headers: [:], failure: .changed),
        Surprise(status: 200, headers: [.eTag: "\"2\""], failure: .changed, isWhole: true),
        Surprise(status: 200, headers: [:], failure: .changed, isWhole: true),
        Surprise(status: 200, headers: [.eTag: "\"1\""], failure: .rangesNotSupported, isWhole: true),
        Surprise(
            status: 200, headers: [.lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"], failure: .rangesNotSupported,
            validator: date, isWhole: true),
        Surprise(status: 203, headers: [:], failure: .changed, isWhole: true),
    ]

    @Test(arguments: surprises)
    func `an unexpected response makes it start over, or fail if it must not`(surprise: Surprise) throws {
        let head = try Self.head(surprise.status, surprise.headers)
        let patient = Self.plan(400, surprise.validator)
        #expect(patient.action(for: head) == (surprise.isWhole ? .write : .startOver(surprise.failure)))
        let strict = Self.plan(400, surprise.validator, startsOver: false)
        #expect(strict.action(for: head) == .fail(surprise.failure))
    }

    @Test func `a 416 with the size that is already there means a complete file`() throws {
        let plan = Self.plan(1000, total: nil)
        #expect(plan.action(for: try Self.head(416, [.contentRange: "bytes */1000"])) == .complete)
        #expect(plan.action(for: try Self.head(416, [.contentRange: "bytes */999"])) == .startOver(.changed))
        let changed: HTTPFields = [.contentRange: "bytes */1000", .eTag: "\"2\""]
        #expect(plan.action(for: try Self.head(416, changed)) == .startOver(.changed))
    }

    @Test(arguments: [401, 403, 404, 410, 412, 500, 503, 304])
    func `another status is rejected`(status: Int) throws {
        #expect(Self.plan().action(for: try Self.head(status)) == .reject)
        #expect(ResumePlan().action(for: try Self.head(status)) == .reject)
    }

    @Test(arguments: [201, 202, 204, 205, 207, 226])
    func `a success without the resource does not replace the bytes that are there`(status: Int) throws {
        #expect(Self.plan().action(for: try Self.head(status)) == .reject)
        #expect(Self.plan(startsOver: false).action(for: try Self.head(status)) == .reject)
        #expect(!Self.plan().acceptableStatuses.contains(status))
        #expect(ResumePlan().acceptableStatuses.contains(status))
    }

    @Test func `a partial response to a request without a range is rejected`() throws {
        #expect(ResumePlan().action(for: try Self.head(200)) == .write)
        #expect(ResumePlan().action(for: try Self.head(204)) == .write)
        #expect(ResumePlan().action(for: try Self.head(206, Self.rest)) == .fail(.wrongRange("bytes 400-999/1000")))
        #expect(ResumePlan().action(for: try Self.head(416)) == .reject)
    }

    @Test(
        arguments: [
            ([.eTag: "\"1\"", .contentLength: "1000"], .none, true),
            ([.eTag: "\"2\"", .contentLength: "1000"], .none, false),
            ([.eTag: "\"1\"", .contentLength: "999"], .none, false),
            ([.eTag: "\"1\""], .none, true), ([.contentLength: "1000"], .none, false),
            ([.contentLength: "1000"], .whole, true), ([.contentLength: "999"], .whole, false),
            ([.eTag: "\"2\"", .contentLength: "1000"], .whole, false),
            ([.contentLength: "1000"], .pieces, true), ([.contentLength: "999"], .pieces, false),
            ([.eTag: "\"2\"", .contentLength: "1000"], .pieces, true),
        ] as [(HTTPFields, ExpectedDigests, Bool)])
    func `bytes after a gap stay with the same version, and are lost only if it may start over`(
        fields: HTTPFields, digests: ExpectedDigests, isSame: Bool
    ) throws {
        let head = try Self.head(200, fields)
        for (offset, isReplaced) in [(0, false), (0, true), (400, false), (400, true)] as [(Int64, Bool)] {
            func action(startsOver: Bool, hasParts: Bool) -> ResumePlan.Action {
                ResumePlan(
                    offset: offset, of: Self.representation(), startsOver: startsOver, hasParts: hasParts,
                    digests: digests
                ).action(for: head, isReplaced: isReplaced)
            }
            let keepsParts = isSame && !isReplaced
            #expect(action(startsOver: true, hasParts: true) == (keepsParts ? .writeKeepingParts : .write))
            #expect(action(startsOver: true, hasParts: false) == .write)
            guard offset == 0 else { continue }
            #expect(action(startsOver: false, hasParts: true) == (keepsParts ? .writeKeepingParts : .fail(.changed)))
            #expect(action(startsOver: false, hasParts: false) == .write)
        }
    }

    @Test func `bytes after a gap do not stay beside another content coding`() throws {
        for (digests, keepsParts) in [(.none, false), (.whole, false), (.pieces, true)] as [(ExpectedDigests, Bool)] {
            let plan = ResumePlan(
                offset: 0, of: Self.representation(), startsOver: true, hasParts: true, digests: digests)
            let head = try Self.head(200, [.eTag: "\"1\"", .contentEncoding: "gzip"])
            #expect(plan.action(for: head) == (keepsParts ? .writeKeepingParts : .write))
        }
    }

    @Test func `bytes with a content coding do not stay beside a body without one`() throws {
        let representation = Representation(try Self.head(200, [.eTag: "\"1\"", .contentEncoding: "gzip"]), to: [:])
        for (digests, keepsParts) in [(.none, false), (.whole, false), (.pieces, true)] as [(ExpectedDigests, Bool)] {
            let plan = ResumePlan(offset: 0, of: representation, startsOver: true, hasParts: true, digests: digests)
            let head = try Self.head(200, [.eTag: "\"1\""])
            #expect(plan.action(for: head) == (keepsParts ? .writeKeepingParts : .write))
        }
    }

    @Test func `after a contradiction the digest of the whole keeps no bytes after a gap`() throws {
        for (digests, validator) in [(.none, true), (.whole, true), (.whole, false), (.pieces, false)]
            as [(ExpectedDigests, Bool)]
        {
            var plan = ResumePlan(
                offset: 400, of: Self.representation(), startsOver: true, hasParts: true, digests: digests)
            plan.startOver(hasParts: true)
            #expect(plan.fields == [:])
            let head = try Self.head(200, validator ? [.eTag: "\"1\""] : [:])
            let keepsParts = validator || digests == .pieces
            #expect(plan.action(for: head) == (keepsParts ? .writeKeepingParts : .write))
            plan.startOver(hasParts: false)
            #expect(plan.action(for: head) == .write)
        }
    }

    @Test func `a range that the program requested is written as the whole file`() throws {
        let plan = ResumePlan(hasOwnRange: true)
        #expect(plan.fields == [:])
        #expect(plan.action(for: try Self.head(206, Self.rest)) == .write)
        #expect(plan.action(for: try Self.head(200)) == .write)
        #expect(plan.action(for: try Self.head(416)) == .reject)
    }
}

@Suite struct ResumeDataValidatorTests {
    private static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"

    private static func validator(_ headers: HTTPFields) throws -> Representation.Validator? {
        Representation.Validator(of: ResponseHead(status: .ok, headers: headers, url: try url("http://a.example/")))
    }

    @Test func `only a strong entity tag is a validator`() throws {
        #expect(try Self.validator([.eTag: "\"a\""]) == .entityTag("\"a\""))
        #expect(try Self.validator([.eTag: "\"\""]) == .entityTag("\"\""))
        #expect(try Self.validator([.eTag: "W/\"a\""]) == nil)
        #expect(try Self.validator([.eTag: "a"]) == nil)
        #expect(try Self.validator([.eTag: "\""]) == nil)
        #expect(try Self.validator([:]) == nil)
    }

    @Test func `a date is a validator if the response is later`() throws {
        let later: HTTPFields = [.lastModified: Self.modified, .date: "Sun, 06 Nov 1994 08:49:38 GMT"]
        #expect(try Self.validator(later) == .lastModified(WireText(Self.modified)))
        #expect(try Self.validator([.lastModified: Self.modified, .date: Self.modified]) == nil)
        #expect(try Self.validator([.lastModified: Self.modified]) == nil)
        #expect(try Self.validator([.lastModified: "yesterday", .date: Self.modified]) == nil)
        // The year of the second form is that of the other date's century.
        let short = "Wednesday, 06-Nov-24 08:49:37 GMT"
        #expect(try Self.validator([.lastModified: short, .date: "Wed, 06 Nov 2024 08:49:37 GMT"]) == nil)
        let after: HTTPFields = [.lastModified: short, .date: "Wed, 06 Nov 2024 08:49:38 GMT"]
        #expect(try Self.validator(after) == .lastModified(WireText(short)))
        // A weak tag indicates that the dates are not reliable either.
        #expect(try Self.validator(later + [.eTag: "W/\"a\""]) == nil)
    }
}

extension HTTPFields {
    static func + (left: HTTPFields, right: HTTPFields) -> HTTPFields {
        var sum = left
        sum.append(contentsOf: right)
        return sum
    }
}
