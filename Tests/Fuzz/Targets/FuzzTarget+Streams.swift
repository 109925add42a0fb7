// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSerialization
import FoundationEssentials

extension FuzzTarget {
    /// Parsers of bodies that arrive in chunks: the result does not depend on the chunks.
    static let streams: [FuzzTarget] = [
        FuzzTarget("lines", checkLines),
        FuzzTarget("events", checkEvents),
        FuzzTarget("json-streams", checkJSONStreams),
        FuzzTarget("multipart", checkMultipart),
        FuzzTarget("content-codings", checkContentCodings),
    ]

    // MARK: Lines

    private struct Lines: Equatable {
        var lines: [String] = []
        var isRefused = false
    }

    /// The lines are those between LF, CR LF and CR, up to one that is too long.
    private static func checkLines(_ input: [UInt8]) throws {
        let limit = 20
        var expected = Lines()
        var line: [UInt8] = []
        for (index, byte) in input.enumerated() {
            if byte == 10, index > 0, input[index - 1] == 13 { continue }
            guard byte == 10 || byte == 13 else {
                line.append(byte)
                continue
            }
            guard line.count <= limit else { break }
            expected.lines.append(String(decoding: line, as: UTF8.self))
            line = []
        }
        expected.isRefused = line.count > limit
        if !expected.isRefused, !line.isEmpty { expected.lines.append(String(decoding: line, as: UTF8.self)) }
        try Division.requireSame(input) { chunks in
            var splitter = LineSplitter(maximumLength: limit)
            var result = Lines()
            do throws(TransportError) {
                for chunk in chunks {
                    splitter.append(Data(chunk))
                    while let line = try splitter.next() { result.lines.append(line) }
                }
                if let line = splitter.finish() { result.lines.append(line) }
            } catch {
                result.isRefused = true
            }
            try requireEqual(result, expected, "the lines")
            return result
        }
    }

    // MARK: Events

    private struct Events: Equatable {
        var events: [ServerSentEvent] = []
        var isRefused = false
        var lastID = ""
        var time: Duration?

        init(_ chunks: [ArraySlice<UInt8>]) {
            var parser = ServerSentEventParser(maximumEventSize: 200)
            do throws(TransportError) {
                for chunk in chunks {
                    parser.append(Data(chunk))
                    while let event = try parser.next() { events.append(event) }
                }
            } catch {
                isRefused = true
            }
            (lastID, time) = (parser.lastEventID, parser.reconnectionTime)
        }
    }

    /// Events that are written again are the same.
    private static func checkEvents(_ input: [UInt8]) throws {
        try Division.requireSame(input) { Events($0) }
        let events = Events([input[...]]).events
        let text = events.map { event in
            let data = event.data.utf8.split(separator: 10, omittingEmptySubsequences: false)
                .map { "data: \(String(decoding: $0, as: UTF8.self))\n" }
            return "event: \(event.type)\nid: \(event.id)\n\(data.joined())\n"
        }.joined()
        try requireEqual(Events([Array(text.utf8)[...]]).events, events, "written again")
    }

    // MARK: JSON

    private static func checkJSONStreams(_ input: [UInt8]) throws {
        for makeSplitter in [JSONStreamSplitter.lines, JSONStreamSplitter.sequence] {
            try Division.requireSame(input) { chunks in
                var splitter = makeSplitter(64)
                var parts: [String] = []
                func take(_ next: (part: JSONStreamSplitter.Part, number: Int)?) throws -> Bool {
                    guard let next else { return false }
                    if case .text(let text) = next.part {
                        try require(text.count <= 64, "a text of \(text.count) bytes is within the limit")
                    }
                    parts.append("\(next.number) \(next.part.content)")
                    return true
                }
                for chunk in chunks {
                    splitter.append(Data(chunk))
                    while try take(splitter.next()) {}
                }
                _ = try take(splitter.finish())
                return parts
            }
        }
    }

    // MARK: Multipart

    private struct Parts: Equatable {
        var complete: [String] = []
        var ending = ""
    }

    /// The parts up to the first error are the same.
    private static func checkMultipart(_ input: [UInt8]) throws {
        var limits = MultipartLimits()
        (limits.header, limits.preamble, limits.parts, limits.part) = (128, 32, 8, 64)
        try Division.requireSame(input) { chunks in
            var parser = MultipartParser(boundary: "b", limits: limits)
            var rest = chunks[...]
            var parts = Parts()
            var (header, content) = ("", [UInt8]())
            while true {
                do {
                    switch try parser.next() {
                    case .header(let fields): (header, content) = ("\(fields)", [])
                    case .content(let bytes): content += bytes
                    case .endOfPart:
                        try require(content.count <= 64, "a part of \(content.count) bytes is within the limit")
                        parts.complete.append("\(header) \(content)")
                    case .end: return parts
                    case .needsMore:
                        if let chunk = rest.popFirst() { parser.append(Data(chunk)) } else { parser.finish() }
                    }
                } catch let error as SerializationError {
                    parts.ending = "\(error)"
                    return parts
                }
            }
        }
    }

    // MARK: Codings

    private struct Decoded: Equatable {
        var bytes: [UInt8] = []
        var isRefused = false
    }

    /// The first byte names the codings.
    private static func checkContentCodings(_ input: [UInt8]) throws {
        let lists = ["gzip", "deflate", "br", "zstd", "gzip, deflate", "deflate, gzip"]
        guard let first = input.first else { return }
        var limit = DecompressionLimit()
        limit.maximumSize = 1 << 16
        let content = Array(input.dropFirst())
        try Division.requireSame(content) { chunks in
            let decoder = try ContentDecoder(contentEncoding: [lists[Int(first) % lists.count]], limit: limit)
            var result = Decoded()
            do throws(ContentDecoder.Failure) {
                for chunk in chunks {
                    decoder?.push(Data(chunk))
                    while let bytes = try decoder?.next(upTo: 5_000) { result.bytes += bytes }
                }
                try decoder?.finish()
            } catch {
                // Which of several codings is malformed depends on how far each of them is decoded, and so do the bytes
                // before the error.
                return Decoded(isRefused: true)
            }
            try require(result.bytes.count <= 1 << 16, "\(result.bytes.count) bytes are within the limit")
            return result
        }
    }
}

extension JSONStreamSplitter.Part {
    /// The kind and the bytes.
    fileprivate var content: String {
        switch self {
        case .text(let bytes): "text \(Array(bytes))"
        case .tooLong(let bytes): "too long \(Array(bytes))"
        case .truncated(let bytes): "truncated \(Array(bytes))"
        case .unseparated(let bytes): "unseparated \(Array(bytes))"
        }
    }
}
