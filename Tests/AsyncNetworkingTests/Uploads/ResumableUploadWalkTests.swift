// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// A server of resumable uploads that fails at random, and counts what a client must not do.
private struct ModelServer {
    let uploadProtocol: UploadProtocol
    let length: Int64
    let mostInAPart: Int64?
    private var random: SeededGenerator
    private var uploads: [Int64] = []
    private var isGone: Set<Int> = []
    private(set) var completions = 0
    private(set) var faults: [String] = []
    private var forgetsLeft = 2

    init(_ uploadProtocol: UploadProtocol, length: Int64, mostInAPart: Int64?, seed: UInt64) {
        (self.uploadProtocol, self.length, self.mostInAPart) = (uploadProtocol, length, mostInAPart)
        random = SeededGenerator(seed: seed)
    }

    enum Answer {
        case response(Int, [String: String], interim: [[String: String]])
        case lost(interim: [[String: String]], reached: Bool, sentAll: Bool)
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private var limit: [String: String] {
        uploadProtocol == .ietf ? ["Upload-Limit": mostInAPart.map { "max-append-size=\($0)" } ?? "min-size=0"] : [:]
    }

    mutating func answer(_ message: UploadMessage) -> Answer {
        if chance(10) { return .lost(interim: [], reached: false, sentAll: false) }
        switch message.exchange {
        case .discover:
            return .response(204, uploadProtocol == .tus ? UploadDialogue.tus : limit, interim: [])
        case .create(let range):
            uploads.append(0)
            let url = ["Location": "/u/\(uploads.count - 1)"]
            guard uploadProtocol == .ietf else {
                return chance(10)
                    ? .lost(interim: [], reached: true, sentAll: true) : .response(201, url, interim: [])
            }
            let interim = chance(90) ? [url.merging(limit) { $1 }] : []
            return take(range, uploads.count - 1, url.merging(limit) { $1 }, interim)
        case .locate:
            let number = number(of: message)
            if let refusal = refusal(number) { return refusal }
            if chance(10) { return .response(423, [:], interim: []) }
            return .response(204, state(number), interim: [])
        case .append(let range):
            let number = number(of: message)
            if let refusal = refusal(number) { return refusal }
            guard range.lowerBound == uploads[number] else {
                faults.append("\(range) is sent to offset \(uploads[number])")
                return .response(409, state(number), interim: [])
            }
            if uploads[number] == length, completions > 0 {
                return .response(200, ["Upload-Complete": "?1"], interim: [])
            }
            if chance(5) { return .response(409, uploadProtocol == .ietf ? state(number) : [:], interim: []) }
            if chance(5) { return .response(uploadProtocol == .tus ? 460 : 503, [:], interim: []) }
            return take(range, number, [:], [])
        case .cancel:
            return .response(204, [:], interim: [])
        }
    }

    private func number(of message: UploadMessage) -> Int { Int(message.url?.lastPathComponent ?? "") ?? 0 }

    private mutating func refusal(_ number: Int) -> Answer? {
        // A server may remove what is complete at once.
        if forgetsLeft > 0, chance(uploads[number] < length ? 3 : 30) {
            forgetsLeft -= 1
            isGone.insert(number)
        }
        return isGone.contains(number) ? .response(404, [:], interim: []) : nil
    }

    private func state(_ number: Int) -> [String: String] {
        var fields = ["Upload-Offset": "\(uploads[number])", "Upload-Length": "\(length)"].merging(limit) { $1 }
        if uploadProtocol == .ietf {
            fields["Upload-Complete"] = uploads[number] == length && completions > 0 ? "?1" : "?0"
        }
        return fields
    }

    private mutating func take(
        _ range: Range<Int64>, _ number: Int, _ fields: [String: String], _ interim: [[String: String]]
    ) -> Answer {
        if let mostInAPart, range.count > mostInAPart { faults.append("\(range) exceeds the limit") }
        var interim = interim
        if chance(25), !range.isEmpty {
            let taken = Int64.random(in: 0..<Int64(range.count), using: &random)
            uploads[number] = range.lowerBound + taken
            if uploadProtocol == .ietf, chance(50) { interim.append(["Upload-Offset": "\(uploads[number])"]) }
            return .lost(interim: interim, reached: true, sentAll: false)
        }
        uploads[number] = range.upperBound
        let isComplete = range.upperBound == length
        if isComplete { completions += 1 }
        if chance(15) { return .lost(interim: interim, reached: true, sentAll: true) }
        if uploadProtocol == .tus { return .response(204, ["Upload-Offset": "\(range.upperBound)"], interim: []) }
        let fields = fields.merging(["Upload-Complete": isComplete ? "?1" : "?0"]) { $1 }
        return .response(isComplete ? 200 : 201, fields, interim: interim)
    }
}

@Suite struct ResumableUploadWalkTests {
    @Test(arguments: [UploadProtocol.tus, .ietf])
    func `with a server that fails at random, an upload completes once and sends no byte twice`(
        uploadProtocol: UploadProtocol
    ) throws {
        let count = rounds(3_000, few: 600)
        var (completed, gaveUp, unknown) = (0, 0, 0)
        for seed in 0..<UInt64(count) {
            var random = SeededGenerator(seed: seed &* 7919)
            let length = Int64.random(in: 1...200, using: &random)
            let options = UploadOptions.resumable.with {
                $0.uploadProtocol = Bool.random(using: &random) ? nil : uploadProtocol
                $0.partSize = Bool.random(using: &random) ? nil : Int64.random(in: 1...50, using: &random)
            }
            let limit: Int64? = Bool.random(using: &random) || options.uploadProtocol != nil ? nil : 20
            var server = ModelServer(
                uploadProtocol, length: length, mostInAPart: uploadProtocol == .ietf ? limit : nil, seed: seed)
            var upload = ResumableUpload(length: length, options: options)
            var action = upload.resume(now: 0)
            var steps = 0
            walk: while true {
                steps += 1
                try #require(steps < 2_000, "seed \(seed) does not end")
                switch action {
                case .send(let message):
                    switch server.answer(message) {
                    case .response(let status, let fields, let interim):
                        for fields in interim { upload.receiveInterim(try Self.head(104, fields, message), now: 0) }
                        action = upload.receive(try Self.head(status, fields, message), now: 0)
                    case .lost(let interim, let reached, let sentAll):
                        for fields in interim { upload.receiveInterim(try Self.head(104, fields, message), now: 0) }
                        guard upload.interrupt(mayHaveReachedServer: reached, sentAll: sentAll) else {
                            gaveUp += 1
                            break walk
                        }
                        action = upload.resume(now: 0)
                    }
                case .wait:
                    action = upload.resume(now: 0)
                case .finish, .finishAsLocated:
                    completed += 1
                    #expect(server.completions == 1, "seed \(seed)")
                    break walk
                case .fail(.outcomeUnknown):
                    unknown += 1
                    break walk
                case .fail(let failure):
                    Issue.record("seed \(seed): \(failure)")
                    break walk
                }
            }
            #expect(server.faults == [], "seed \(seed)")
            // A completed one is never repeated.
            #expect(server.completions <= 1, "seed \(seed)")
        }
        // A creation of the draft that is interrupted before its URL is known is not repeated.
        #expect(completed > count * 2 / 3)
        #expect(uploadProtocol == .ietf || completed + unknown == count)
        #expect(unknown > 0 && unknown < 300)
    }

    private static func head(_ status: Int, _ fields: [String: String], _ message: UploadMessage) throws -> ResponseHead
    {
        let fields = status == 104 ? fields.merging(UploadDialogue.interop) { $1 } : fields
        return ResponseHead(
            status: HTTPResponse.Status(code: status),
            headers: try HTTPFields(validating: fields.map { ($0.key, $0.value) }),
            url: try message.url ?? url("http://a.example/up"))
    }
}
