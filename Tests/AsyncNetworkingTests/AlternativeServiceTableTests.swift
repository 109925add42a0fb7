// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import FoundationEssentials
import Testing

@Suite struct AlternativeServiceTableTests {
    private static let start = Date(timeIntervalSince1970: 1_800_000_000)
    private static let key = AlternativeService.Key(host: "a.example", port: 443)

    private static func later(_ seconds: Double) -> Date {
        start.addingTimeInterval(seconds)
    }

    private func note(
        _ value: String, in table: inout HostTable<AlternativeService>, age: Int64 = 0, at now: Date = Self.start
    ) throws {
        table.note(try #require(AlternativeServiceField(value)), from: Self.key, age: age, at: now)
    }

    private func table(_ value: String = #"h3=":444"; ma=1000000"#) throws -> HostTable<AlternativeService> {
        var table = HostTable<AlternativeService>()
        try note(value, in: &table)
        return table
    }

    /// Returns the port that the next request uses, negative if it is not proven; `nil` for the origin's connection.
    private func take(_ table: inout HostTable<AlternativeService>, at seconds: Double = 0) -> Int? {
        table.take(for: Self.key, at: Self.later(seconds)).map { $0.use == .proven ? $0.port : -$0.port }
    }

    /// The trial that began at a time.
    private func trial(since seconds: Double = 0) -> AlternativeUse { .trial(until: Self.later(seconds + 60)) }

    @Test(
        arguments: [
            (#"h3=":444""#, 444), (#"h3="a.example:444""#, 444), (#"h3="A.Example.:444""#, 444),
            (#"h2=":444", h3=":445", h3=":446""#, 445), (#"h3="b.example:444", h3=":445""#, 445),
            (#"h3="b.example:444""#, nil), (#"h2=":444""#, nil), (#"H3=":444""#, nil), (#"h3-29=":444""#, nil),
            (#"h3=":444"; ma=10"#, nil), (#"h3=":444"; ma=11"#, 444), (#"h3=":444"; ma=0"#, nil), ("clear", nil),
        ] as [(String, Int?)])
    func `the first alternative that can be used replaces that of the origin`(value: String, port: Int?) throws {
        var table = try table(#"h3=":1""#)
        try note(value, in: &table, age: 10)
        #expect(table.current(at: Self.start).map(\.alternativePort) == (port.map { [$0] } ?? []))
    }

    @Test func `an alternative expires`() throws {
        var table = try table(#"h3=":444"; ma=100; persist=1"#)
        try note(#"h3=":444"; ma=100; persist=1"#, in: &table, age: 40)
        let service = AlternativeService(
            host: "a.example", port: 443, alternativePort: 444, expiry: Self.later(60), persists: true)
        #expect(table.current(at: Self.later(59)) == [service])
        #expect(take(&table, at: 59) == -444)
        #expect(table.current(at: Self.later(60)).isEmpty)
        #expect(take(&table, at: 60) == nil)
        #expect(table.isEmpty)
    }

    @Test func `other origins are not concerned`() throws {
        var table = try table()
        #expect(table.take(for: .init(host: "a.example", port: 444), at: Self.start) == nil)
        #expect(table.take(for: .init(host: "b.a.example", port: 443), at: Self.start) == nil)
        #expect(take(&table) == -444)
    }

    @Test func `one request tries an alternative, and all use it if it worked`() throws {
        var table = try table()
        #expect(take(&table) == -444)
        #expect(take(&table, at: 59) == nil)
        table.noteUse(of: 444, for: Self.key, hasWorked: true, at: Self.start)
        #expect(take(&table) == 444)
        #expect(take(&table) == 444)
    }

    @Test func `a trial without a result is repeated by another request`() throws {
        var table = try table()
        #expect(take(&table) == -444)
        table.end(trial(), of: 445, for: Self.key)
        #expect(take(&table) == nil)
        table.end(trial(), of: 444, for: Self.key)
        #expect(take(&table, at: 1) == -444)
        // The request that tries it takes longer than a minute.
        #expect(take(&table, at: 60) == nil)
        #expect(take(&table, at: 61) == -444)
        // Its end is not that of the other's trial.
        table.end(trial(since: 1), of: 444, for: Self.key)
        #expect(take(&table, at: 62) == nil)
        table.end(.proven, of: 444, for: Self.key)
        #expect(take(&table, at: 62) == nil)
        table.end(trial(since: 61), of: 444, for: Self.key)
        #expect(take(&table, at: 62) == -444)
        table.noteUse(of: 444, for: Self.key, hasWorked: true, at: Self.start)
        table.end(trial(since: 62), of: 444, for: Self.key)
        #expect(take(&table) == 444)
    }

    @Test func `a failure counts for no longer if the clock is set back`() throws {
        var table = try table()
        #expect(take(&table) == -444)
        table.noteUse(of: 444, for: Self.key, hasWorked: false, at: Self.start)
        #expect(take(&table, at: -86_000) == nil)
        #expect(take(&table, at: -31_536_000) == -444)
        table.noteUse(of: 444, for: Self.key, hasWorked: false, at: Self.later(-31_536_000))
        #expect(take(&table, at: -31_536_000 + 299) == nil)
    }

    @Test func `an alternative that failed is not used for some time, which doubles`() throws {
        var table = try table()
        var now = 0.0
        for expected in [300.0, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400, 76_800, 86_400, 86_400] {
            #expect(take(&table, at: now) == -444)
            table.noteUse(of: 444, for: Self.key, hasWorked: false, at: Self.later(now))
            // Requests that were sent together fail together.
            table.noteUse(of: 444, for: Self.key, hasWorked: false, at: Self.later(now + 1))
            table.end(trial(since: now), of: 444, for: Self.key)
            #expect(take(&table, at: now + expected - 1) == nil)
            now += expected
        }
        #expect(take(&table, at: now) == -444)
        table.noteUse(of: 444, for: Self.key, hasWorked: true, at: Self.later(now))
        table.noteUse(of: 444, for: Self.key, hasWorked: false, at: Self.later(now))
        #expect(take(&table, at: now + 299) == nil)
        #expect(take(&table, at: now + 300) == -444)
    }

    @Test func `what is known about a port outlasts a renewal, but not a change of the port`() throws {
        var table = try table()
        table.noteUse(of: 444, for: Self.key, hasWorked: false, at: Self.start)
        try note(#"h3=":444""#, in: &table)
        #expect(take(&table) == nil)
        try note(#"h3=":445""#, in: &table)
        // The result of a request that was sent before.
        table.noteUse(of: 444, for: Self.key, hasWorked: false, at: Self.start)
        #expect(take(&table) == -445)
    }

    @Test func `alternatives are removed by host`() throws {
        var table = try table()
        for (host, port) in [("a.example", 8_443), ("b.example", 443)] {
            table.setWithinLimit(
                AlternativeService(
                    host: host, port: port, alternativePort: 1, expiry: .distantFuture, persists: false))
        }
        #expect(
            table.current(at: Self.start).map { "\($0.host):\($0.port)" } == [
                "a.example:443", "a.example:8443", "b.example:443",
            ])
        table.remove(Self.key)
        #expect(table.current(at: Self.start).map(\.port) == [8_443, 443])
        table.remove(HostName("a.example"))
        #expect(table.current(at: Self.start).map(\.host) == ["b.example"])
    }

    @Test func `the number of origins is limited, and the first to expire makes room`() throws {
        var table = HostTable<AlternativeService>()
        for number in 0...HostTable<AlternativeService>.maximumCount {
            // That of number 2 expires first.
            table.setWithinLimit(
                AlternativeService(
                    host: "\(number).example", port: 443, alternativePort: 443,
                    expiry: Self.later(number == 2 ? 1 : 10), persists: false))
        }
        #expect(table.current(at: Self.start).count == HostTable<AlternativeService>.maximumCount)
        #expect(table.take(for: .init(host: "2.example", port: 443), at: Self.start) == nil)
        #expect(table.take(for: .init(host: "5000.example", port: 443), at: Self.start) != nil)
    }

    @Test(.timeLimit(.minutes(1))) func `of a long file, the entries that expire last are kept`() {
        var table = HostTable<AlternativeService>()
        table.setWithinLimit(
            (0..<100_000).map { number in
                AlternativeService(
                    host: "\(number).example", port: 443, alternativePort: 443, expiry: Self.later(Double(number + 1)),
                    persists: false)
            })
        #expect(table.current(at: Self.start).count == HostTable<AlternativeService>.maximumCount)
        #expect(table.take(for: .init(host: "99999.example", port: 443), at: Self.start) != nil)
        #expect(table.take(for: .init(host: "94999.example", port: 443), at: Self.start) == nil)
    }

    @Test func `lines of curl's file are read and written`() throws {
        for line in [
            #"h2 a.example 443 h3 a.example 8443 "20301231 23:59:59" 1 0"#,
            #"h2 [::1] 443 h3 [::1] 443 "20301231 23:59:59" 0 0"#,
        ] {
            #expect(AlternativeService(fileLine: line[...])?.fileLine == line)
        }
        let line = #"h1  A.example. 1 h3 a.example 2 "19700101 00:00:10" 0 5"#
        #expect(
            AlternativeService(fileLine: line[...])
                == AlternativeService(
                    host: "a.example", port: 1, alternativePort: 2, expiry: Date(timeIntervalSince1970: 10),
                    persists: false))
        for line in [
            "", "# Alt-Svc", "h2 a.example 443 h3 a.example 443", #"h2 a.example 443 h3 a.example 443 "soon" 0 0"#,
            #"h2 a.example 443 h2 a.example 443 "20301231 23:59:59" 0 0"#,
            #"h2 a.example 443 h3 b.example 443 "20301231 23:59:59" 0 0"#,
            #"h2 a.example 0 h3 a.example 443 "20301231 23:59:59" 0 0"#,
            #"h2 a.example 443 h3 a.example 65536 "20301231 23:59:59" 0 0"#,
            #"x a.example 443 h3 a.example 443 "20301231 23:59:59" 0 0"#,
            #"h2 ä.example 443 h3 ä.example 443 "20301231 23:59:59" 0 0"#,
            #"h2 a.example 443 h3 a.example "20301231 23:59:59" 0 0"#,
        ] {
            #expect(AlternativeService(fileLine: line[...]) == nil, "\(line)")
        }
    }
}
