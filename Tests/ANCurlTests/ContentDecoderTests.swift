// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import FoundationEssentials
import Testing

@Suite(.timeLimit(.minutes(5))) struct ContentDecoderTests {
    // MARK: What is to be decoded

    @Test func `what is supported is asked for`() {
        let names =
            ["gzip", "deflate"] + (BrotliDecoder.isAvailable ? ["br"] : []) + (ZstdDecoder.isAvailable ? ["zstd"] : [])
        #expect(ContentDecoder.supportedCodings == names.joined(separator: ", "))
    }

    @Test(arguments: [[], [""], ["identity"], [" , ,", "Identity,\t"]] as [[String]])
    func `nothing is decoded without a coding`(fields: [String]) throws {
        #expect(try ContentDecoder(contentEncoding: fields, limit: .init()) == nil)
    }

    @Test(arguments: [["gzip"], ["GZip"], ["x-gzip"], ["\t gzip ,"], ["identity, gzip"], ["", "gzip", "identity"]])
    func `names have no case, and what changes nothing is ignored`(fields: [String]) throws {
        #expect(try Body.gzip.decode(codings: fields) == Body.text)
    }

    @Test(arguments: [
        (["rot13"], "rot13"), (["gzip, Compress"], "compress"), (["gzip br"], "gzip br"), (["\"gzip\""], "\"gzip\""),
        (["gzip", "gzip;q=1"], "gzip;q=1"), (["gzíp"], "gzíp"), (["*"], "*"),
    ])
    func `an unknown coding is an error`(fields: [String], name: String) {
        #expect(throws: ContentDecoder.Failure.unknownCoding(name)) {
            _ = try ContentDecoder(contentEncoding: fields, limit: .init())
        }
    }

    @Test func `five codings are the most`() throws {
        #expect(
            try ContentDecoder(contentEncoding: ["gzip, gzip, identity, gzip", "gzip, gzip"], limit: .init()) != nil)
        #expect(throws: ContentDecoder.Failure.tooManyCodings) {
            _ = try ContentDecoder(contentEncoding: ["gzip, gzip, gzip, gzip", "gzip, gzip"], limit: .init())
        }
    }

    // MARK: Decoding

    @Test(arguments: Body.available)
    func `a body in two pieces is decoded, wherever it is split`(body: Body) throws {
        for split in 0...body.data.count {
            let pieces = [body.data.prefix(split), body.data.dropFirst(split)]
            #expect(try body.decode(pieces) == Body.text, "split at \(split)")
        }
    }

    @Test(arguments: Body.available)
    func `a body byte by byte is decoded into pieces of any size`(body: Body) throws {
        let pieces = body.data.map { Data([$0]) }
        for count in [1, 2, 7, 1_000, .max] { #expect(try body.decode(pieces, upTo: count) == Body.text) }
    }

    @Test(arguments: [-1, 0, 1, 10])
    func `no more bytes than asked for are returned, and never none`(count: Int) throws {
        let decoder = try #require(try ContentDecoder(contentEncoding: ["gzip"], limit: .init()))
        #expect(try decoder.next(upTo: count) == nil)
        decoder.push(Body.gzip.data)
        var decoded = Data()
        while let chunk = try decoder.next(upTo: count) {
            #expect(1...max(1, count) ~= chunk.count)
            decoded += chunk
        }
        #expect(decoded == Body.text)
    }

    @Test(arguments: Body.available)
    func `a body cut off anywhere is truncated`(body: Body) throws {
        for count in 1..<body.data.count {
            #expect(throws: ContentDecoder.Failure.truncated(body.coding), "cut off after \(count)") {
                try body.decode([body.data.prefix(count)])
            }
        }
    }

    @Test(arguments: Body.available)
    func `a body without bytes is empty`(body: Body) throws {
        #expect(try body.decode([]) == Data())
        #expect(try body.decode([Data(), Data()]) == Data())
    }

    @Test(arguments: Body.available)
    func `a corrupted byte is malformed, truncates, or does no harm`(body: Body) throws {
        for index in body.data.indices {
            for mask: UInt8 in [0x01, 0x40, 0xFF] {
                var data = body.data
                data[index] ^= mask
                do throws(ContentDecoder.Failure) {
                    let decoded = try body.decode([data])
                    if body.hasSum { #expect(decoded == Body.text || index < 2) }
                } catch {
                    switch error {
                    case .malformed, .truncated: break
                    case .unknownCoding, .tooManyCodings, .empty, .tooLarge, .system: Issue.record(error)
                    }
                }
            }
        }
    }

    @Test func `a failure is thrown again`() throws {
        let decoder = try #require(try ContentDecoder(contentEncoding: ["gzip"], limit: .init()))
        decoder.push(Data("plain text".utf8))
        for _ in 0..<3 { #expect(throws: ContentDecoder.Failure.malformed(.gzip)) { _ = try decoder.next() } }
        decoder.push(Body.gzip.data)
        #expect(throws: ContentDecoder.Failure.malformed(.gzip)) { _ = try decoder.next() }
        #expect(throws: ContentDecoder.Failure.malformed(.gzip)) { try decoder.finish() }
    }

    @Test func `a body that is pushed and not taken is not complete`() throws {
        let decoder = try #require(try ContentDecoder(contentEncoding: ["gzip"], limit: .init()))
        decoder.push(Body.gzip.data)
        #expect(throws: ContentDecoder.Failure.truncated(.gzip)) { try decoder.finish() }
    }

    @Test func `pieces may be pushed before they are needed`() throws {
        let decoder = try #require(try ContentDecoder(contentEncoding: ["gzip"], limit: .init()))
        for byte in Body.gzip.data { decoder.push(Data([byte])) }
        #expect(try decoder.next() == Body.text)
        #expect(try decoder.next() == nil)
        try decoder.finish()
    }

    // MARK: After the end

    @Test func `members of gzip are decoded to their concatenation`() throws {
        let data = Body.gzip.data + Body.emptyGzip + Body.gzip.data
        for split in 0...data.count {
            let decoded = try Body.gzip.decode([data.prefix(split), data.dropFirst(split)])
            #expect(decoded == Body.text + Body.text, "split at \(split)")
        }
    }

    @Test func `a member of gzip that follows and is cut off is truncated`() throws {
        let (data, count) = (Body.gzip.data, Body.gzip.data.count)
        for more in 1..<count {
            #expect(throws: ContentDecoder.Failure.truncated(.gzip), "cut off after \(more)") {
                try Body.gzip.decode([data + data.prefix(more)])
            }
        }
    }

    @Test func `a member of gzip that follows and is corrupted is malformed`() throws {
        var member = Body.gzip.data
        member[member.endIndex - 1] ^= 1
        #expect(throws: ContentDecoder.Failure.malformed(.gzip)) { try Body.gzip.decode([Body.gzip.data + member]) }
    }

    @Test(
        arguments: Body.available.filter { $0 != .zstd },
        [[0], [UInt8](repeating: 0, count: 512), [1, 2, 3], [0x1F, 0x1F]])
    func `bytes after the end are ignored`(body: Body, bytes: [UInt8]) throws {
        let data = body.data + bytes
        #expect(try body.decode([data]) == Body.text)
        #expect(try body.decode(data.map { Data([$0]) }) == Body.text)
    }

    @Test(.enabled(if: ZstdDecoder.isAvailable))
    func `bytes after a frame of zstd are malformed, and another frame is decoded`() throws {
        #expect(throws: ContentDecoder.Failure.malformed(.zstd)) {
            try Body.zstd.decode([Body.zstd.data + [0, 0, 0, 0]])
        }
        #expect(try Body.zstd.decode([Body.zstd.data + Body.zstd.data]) == Body.text + Body.text)
    }

    // MARK: Several codings

    @Test(
        .enabled(if: BrotliDecoder.isAvailable), arguments: [["gzip, br"], ["gzip", "br"], ["x-gzip,identity , BR"]])
    func `several codings are decoded, the last one first`(fields: [String]) throws {
        let data = Body.brotliOfGzip
        for split in 0...data.count {
            let decoded = try Body.decode([data.prefix(split), data.dropFirst(split)], codings: fields)
            #expect(decoded == Body.text, "split at \(split)")
        }
        for count in 1..<data.count {
            #expect(throws: ContentDecoder.Failure.truncated(.brotli)) {
                try Body.decode([data.prefix(count)], codings: fields)
            }
        }
    }

    @Test func `each of five codings is decoded`() throws {
        var data = Body.text
        for format in [Deflater.Format.gzip, .zlib, .gzip, .gzip, .zlib] { data = try Body.deflated(data, format) }
        let codings = ["gzip, deflate, gzip, gzip, deflate"]
        #expect(try Body.decode([data], codings: codings) == Body.text)
        #expect(try Body.decode(data.map { Data([$0]) }, codings: codings, upTo: 3) == Body.text)
    }

    @Test func `an inner coding that is cut off is truncated, an empty one too`() throws {
        for count in 0..<Body.gzip.data.count {
            let data = try Body.deflated(Body.gzip.data.prefix(count), .zlib)
            #expect(throws: ContentDecoder.Failure.truncated(.gzip), "cut off after \(count)") {
                try Body.decode([data], codings: ["gzip, deflate"])
            }
        }
    }

    // MARK: Limits

    /// 30 MB of zeros.
    private static let bomb = Result { try Body.zeros(30_000_000, .gzip) }

    @Test(arguments: [1 << 10, 16 << 10, .max])
    func `a body that unpacks to too many times its size is refused within a chunk`(pieceSize: Int) throws {
        let bomb = try Self.bomb.get()
        #expect(25_000...35_000 ~= bomb.count)
        let decoder = try #require(try ContentDecoder(contentEncoding: ["gzip"], limit: .init()))
        var (rest, decoded) = (bomb[...], 0)
        #expect(throws: ContentDecoder.Failure.tooLarge(.decompressionRatio(limit: 200))) {
            while !rest.isEmpty {
                decoder.push(rest.prefix(pieceSize))
                rest = rest.dropFirst(pieceSize)
                while let chunk = try decoder.next() {
                    decoded += chunk.count
                    #expect(chunk.count <= 64 << 10)
                }
            }
        }
        // As far as the ratio does not matter.
        #expect(decoded <= 1 << 20)
        #expect(decoded > (1 << 20) - (64 << 10))
    }

    @Test func `a body that unpacks to too much is refused before what is too much is returned`() throws {
        var limit = DecompressionLimit()
        limit.maximumSize = Body.text.count
        #expect(try Body.gzip.decode(limit: limit) == Body.text)
        limit.maximumSize = Body.text.count - 1
        #expect(throws: ContentDecoder.Failure.tooLarge(.decompressed(limit: Body.text.count - 1))) {
            try Body.gzip.decode(limit: limit)
        }
    }

    @Test func `without limits all is decoded, a chunk at a time`() throws {
        let bomb = try Self.bomb.get()
        var limit = DecompressionLimit()
        (limit.maximumRatio, limit.maximumSize) = (nil, nil)
        let decoder = try #require(try ContentDecoder(contentEncoding: ["gzip"], limit: limit))
        decoder.push(bomb)
        var count = 0
        while let chunk = try decoder.next() { count += chunk.count }
        try decoder.finish()
        #expect(count == 30_000_000)
    }

    @Test func `a coding in between that unpacks to too much is refused, though nothing comes of it`() throws {
        let data = try Body.deflated(Body.emptyMembers, .gzip)
        #expect(data.count < 20_000)
        #expect(throws: ContentDecoder.Failure.tooLarge(.decompressionRatio(limit: 200))) {
            try Body.decode([data], codings: ["gzip, gzip"])
        }
    }

    @Test func `a coding in between that is decoded to nothing is refused, though its ratio is within the limit`()
        throws
    {
        let data = try Body.deflated(Body.emptyMembers, .gzip, level: 1)
        #expect(data.count * 200 > Body.emptyMembers.count)
        var limit = DecompressionLimit()
        #expect(throws: ContentDecoder.Failure.tooLarge(.decompressionRatio(limit: 200))) {
            try Body.decode([data], codings: ["gzip, gzip"], limit: limit)
        }
        limit.maximumRatio = nil
        // A decoder may hold a block of its input.
        let least = 50 * (Body.emptyMembers.count - (160 << 10))
        limit.maximumSize = least - 1
        #expect(throws: ContentDecoder.Failure.tooLarge(.decompressed(limit: least - 1))) {
            try Body.decode([data], codings: ["gzip, gzip"], limit: limit)
        }
        limit.maximumSize? += 1
        #expect(try Body.decode([data], codings: ["gzip, gzip"], limit: limit).isEmpty)
    }

    @Test func `bytes without content are refused when they are many`() throws {
        let most = 1 << 20
        let bodies = [
            Body.emptyMembers, try Body.deflated(Data(), .gzip) + Data(count: 2 * most),
            Data(Body.emptyMembers.prefix(most)),
        ]
        for (body, isRefused) in zip(bodies, [true, true, false]) {
            let result = Result { try Body.decode([body], codings: ["gzip"]) }
            if isRefused {
                #expect(throws: ContentDecoder.Failure.empty(.gzip)) { try result.get() }
            } else {
                #expect(throws: ContentDecoder.Failure.truncated(.gzip)) { try result.get() }
            }
        }
    }

    @Test func `decoding that has no result pauses`() throws {
        let data = try Body.deflated(Body.emptyMembers, .gzip, level: 1)
        var limit = DecompressionLimit()
        limit.maximumRatio = nil
        let codings = ["gzip", "gzip"]
        let decoder = try #require(try ContentDecoder(contentEncoding: codings, limit: limit))
        decoder.push(data)
        var pauseCount = 0
        while let chunk = try decoder.next() {
            #expect(chunk.isEmpty)
            pauseCount += 1
        }
        try decoder.finish()
        // At least the bytes of the members are work, which is done 1 MiB at a time.
        #expect(pauseCount >= Body.emptyMembers.count >> 20)
    }
}

/// A text in each coding.
enum Body: CaseIterable {
    case gzip, zlib, deflate, brotli, zstd

    /// Those that can be decoded here.
    static let available = allCases.filter(\.coding.isAvailable)

    /// The text that all decode to.
    static let text = Data(
        (String(repeating: "The quick brown fox jumps over the lazy dog. ", count: 4)
            + "Sphinx of black quartz, judge my vow: 0123456789.").utf8)

    /// A member of gzip without content: the header, an empty block with fixed codes, the sum and the length.
    static let emptyGzip = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0] + [UInt8](repeating: 0, count: 8))

    /// 4 MB of such members.
    static let emptyMembers = Data([[UInt8]](repeating: Array(emptyGzip), count: 200_000).joined())

    /// The text as gzip, by Brotli 1.2.
    static let brotliOfGzip = bytes(
        """
        CzeAH4sIAAAAAAACA83L1xGAIBQF0VZuAY5jTm1oA6hgAp+iGKheyvB79zQjx26mbkGr6V4h6MFs1HaALq5xuiyZfdHT4KP5x1xv47Q+IIFWMkd2\
        w/RpPQf6gUO9uOiuEIRRnKRZXpT+ByHz6tvlAAAAAw==
        """)

    var coding: ContentDecoder.Coding {
        switch self {
        case .gzip: .gzip
        case .zlib, .deflate: .deflate
        case .brotli: .brotli
        case .zstd: .zstd
        }
    }

    /// Whether a sum of the text is at the end.
    var hasSum: Bool { ![.deflate, .brotli].contains(self) }

    var data: Data {
        switch self {
        case .gzip: Self.gzipData
        case .zlib: Self.zlibData
        // What is between the header and the sum of zlib.
        case .deflate: Data(Self.zlibData.dropFirst(2).dropLast(4))
        case .brotli: Self.brotliData
        case .zstd: Self.zstdData
        }
    }

    private static let gzipData = (try? deflated(text, .gzip)) ?? Data()
    private static let zlibData = (try? deflated(text, .zlib)) ?? Data()
    /// By Brotli 1.2, quality 11.
    private static let brotliData = bytes(
        """
        G+QAAIyUqONbPnk/0ge0qxDdAPNnVtibUw4cWltbGOQXPYCdFO85fD6SRx6rJbaLQ8jFKV/46AGVJxj9H9JKQNhhbd38YilFhv+o+R9jaUKe98eD\
        Mi6k0sY6Ag==
        """)
    /// By zstd(1) 1.5.4, `zstd -19 --check`.
    private static let zstdData = bytes(
        """
        KLUv/QRo9QIA4gUVF1BZY/+3GEI+jyYamsWMbaTk5lPMzHwIwaIkyGEUxCDMgPstYs8pqtXA6HGybluQvJ6lPcwoqjUH00aLo7ye1Jub395pWK0O\
        VzoDl3u2IKpuT+oEAQAlQEqVAUhHvhk=
        """)

    private static func bytes(_ base64: String) -> Data {
        Data(base64Encoded: base64) ?? Data()
    }

    /// Decodes the body, as a whole or in pieces.
    func decode(
        _ pieces: [Data]? = nil, codings: [String]? = nil, limit: DecompressionLimit = .init(), upTo count: Int = .max
    ) throws(ContentDecoder.Failure) -> Data {
        try Self.decode(pieces ?? [data], codings: codings ?? [coding.rawValue], limit: limit, upTo: count)
    }

    /// Decodes a body in pieces.
    static func decode(
        _ pieces: [Data], codings: [String], limit: DecompressionLimit = .init(), upTo count: Int = .max
    ) throws(ContentDecoder.Failure) -> Data {
        guard let decoder = try ContentDecoder(contentEncoding: codings, limit: limit) else {
            Issue.record("nothing is decoded")
            return Data()
        }
        var decoded = Data()
        for piece in pieces {
            decoder.push(piece)
            while let chunk = try decoder.next(upTo: count) { decoded += chunk }
        }
        try decoder.finish()
        return decoded
    }

    static func deflated(_ data: Data, _ format: Deflater.Format, level: Int = 6) throws -> Data {
        var deflater = try Deflater(format: format, level: level)
        var (rest, result, buffer) = (data, Data(), Data(count: 64 << 10))
        while true {
            var bytes = buffer.mutableBytes
            let step = try deflater.step(rest.bytes, isEnd: true, into: &bytes)
            rest = rest.dropFirst(step.consumed)
            result += buffer.prefix(step.produced)
            if step.isFinished { return result }
        }
    }

    /// Compresses zeros, without ever having them all.
    static func zeros(_ count: Int, _ format: Deflater.Format) throws -> Data {
        var deflater = try Deflater(format: format, level: 9)
        let zeros = Data(count: 1 << 20)
        var (left, result, buffer) = (count, Data(), Data(count: 64 << 10))
        while true {
            let piece = zeros.prefix(left)
            var bytes = buffer.mutableBytes
            let step = try deflater.step(piece.bytes, isEnd: piece.count == left, into: &bytes)
            left -= step.consumed
            result += buffer.prefix(step.produced)
            if step.isFinished { return result }
        }
    }
}
