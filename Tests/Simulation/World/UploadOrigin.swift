// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// The server of resumable uploads, which keeps, loses and forgets what it receives, as tus 1.0 and the draft permit.
struct UploadOrigin: Sendable {
    static let host = "c.test"
    let world: SimulatedWorld
    let ledger: Ledger
    let settings: Program.Settings

    /// What is known of the upload of a call.
    struct Plan: Sendable {
        let uploadProtocol: UploadProtocol
        let content: Data
        /// Whether the upload may be created again although the server has perhaps completed it.
        var mayRepeat: Bool
        var completions = 0
        /// The offsets that the server has told.
        var offsets: Set<Int64> = [0]
    }

    /// An upload on the server.
    struct Stored: Sendable {
        var data = Data()
        /// The number of bytes that the server has told last.
        var told = 0
        var isGone = false
        var isComplete = false
    }

    /// Whether a request belongs to an upload.
    static func serves(_ request: Request) -> Bool {
        request.url.host() == host && ["/up/", "/u/"].contains { request.url.path().hasPrefix($0) }
    }

    /// Whether a request has bytes of an upload that the server has created.
    static func continues(_ request: Request) -> Bool { serves(request) && request.method == .patch }

    /// How the server receives the content of a request.
    func receive(_ request: Request) -> MockTransport.Reception {
        let length = contentLength(request)
        guard length > 0, world.chance(settings.uploadFaultRate) else { return .complete }
        let count = world.random(in: 0...length - 1)
        let kind = world.random(in: 0...2)
        ledger.cover("upload.\(["early", "cut", "silent"][kind])")
        if kind == 0 { return .answered(after: count) }
        let index = ledger.arrive(request)
        ledger.update { $0.arrivals[index].outcome = .lost }
        judge(request)
        let (path, kept) = (request.url.path(), world.random(in: 0...count))
        ledger.update { state in
            guard let start = request.uploadOffset, let upload = state.uploads[path], !upload.isGone,
                start == upload.data.count, let plan = state.plans[request.call]
            else { return }
            state.uploads[path]?.data += plan.content[start..<start + kept]
        }
        return kind == 1
            ? .failing(after: count, TransportError(.connectionLost(.whileSending))) : .silent(after: count)
    }

    func answer(_ received: MockTransport.ReceivedRequest) -> MockResponse {
        let request = received.request
        let index = ledger.arrive(request)
        judge(request)
        func lost(_ reason: TransportError.Reason) -> MockResponse {
            ledger.update { $0.arrivals[index].outcome = .lost }
            return MockResponse([.pause(latency), .fail(TransportError(reason))])
        }
        guard world.chance(settings.faultRate) else { return process(received) }
        switch world.random(in: 0...9) {
        case 0: return lost(.cannotConnect(.refused))
        case 1: return lost(.connectionLost(.whileSending))
        case 2:
            _ = process(received)
            return lost(.connectionLost(.beforeResponse))
        case 3: return MockResponse([.hang])
        case 4:
            _ = process(received)
            return MockResponse([.hang])
        case 5:
            // Only an upload is locked.
            return response([408, 425, 429, 500, 503, request.method == .options ? 503 : 423][world.random(in: 0...5)])
        case 6:
            ledger.cover("upload.forgotten")
            ledger.update { $0.uploads[request.url.path()]?.isGone = true }
        case 7:
            ledger.cover("upload.bytesLost")
            let share = world.random(in: 0...100)
            ledger.update { state in
                guard let upload = state.uploads[request.url.path()], !upload.isComplete else { return }
                state.uploads[request.url.path()]?.data = upload.data.prefix(upload.data.count * share / 100)
            }
        case 8 where request.method == .patch: return response(409)
        default:
            if request.uploadOffset != nil || request.method != .head, plan(request)?.uploadProtocol == .ietf {
                return process(received, interim: true)
            }
        }
        return process(received)
    }

    /// A request has the bytes that follow those that the server has told to have.
    private func judge(_ request: Request) {
        guard request.method == .patch, let start = request.uploadOffset,
            let upload = ledger.facts.uploads[request.url.path()], !upload.isGone
        else { return }
        ledger.cover("oracle.3.upload")
        if start < upload.told {
            ledger.violate(
                3, "call \(request.call) sends bytes from \(start), of which the server has told \(upload.told)")
        } else if start > upload.told {
            ledger.violate(2, "call \(request.call) sends bytes from \(start), after \(upload.told)")
        }
    }

    // MARK: Processing

    private func process(_ received: MockTransport.ReceivedRequest, interim: Bool = false) -> MockResponse {
        let request = received.request
        guard let plan = plan(request) else { return response(404) }
        let isTus = plan.uploadProtocol == .tus
        let path = request.url.path()
        switch request.method {
        case .options:
            let limit = world.chance(0.3) ? "max-append-size=40" : "min-size=0"
            return response(
                204,
                isTus
                    ? [
                        .tusResumable: "1.0.0", .tusVersion: "1.0.0", .tusExtension: "creation,termination,checksum",
                        .tusChecksumAlgorithm: "sha1,sha256",
                    ] : [.uploadLimit: limit])
        case _ where path.hasPrefix("/up/"): return create(received, plan, interim)
        case .delete:
            ledger.update { $0.uploads[path]?.isGone = true }
            return response(204)
        default: break
        }
        guard let upload = ledger.facts.uploads[path], !upload.isGone else {
            return response([404, 410, isTus ? 403 : 404][world.random(in: 0...2)])
        }
        guard request.method == .patch else { return response(isTus ? 200 : 204, told(path, plan)) }
        if upload.isComplete, !isTus { return world.chance(0.5) ? response(409) : response(200, told(path, plan)) }
        guard request.uploadOffset == upload.data.count else {
            ledger.cover("upload.conflict")
            return world.chance(0.5) ? response(409) : response(409, isTus ? [:] : told(path, plan))
        }
        let isWhole = received.body.count == contentLength(request)
        if !isWhole, request.headers[.uploadChecksum] != nil { return response(460) }
        if !isWhole, request.headers[.contentDigest] != nil { return response(503) }
        append(received, path, plan)
        let fields = told(path, plan)
        let isComplete = ledger.facts.uploads[path]?.isComplete ?? false
        if !isTus, !isComplete, isWhole, world.chance(0.3) { return response(201, [.uploadComplete: "?0"]) }
        return response(isTus ? 204 : isComplete ? 200 : 201, fields, interim: interim ? fields : nil)
    }

    private func create(_ received: MockTransport.ReceivedRequest, _ plan: Plan, _ interim: Bool) -> MockResponse {
        let path = ledger.update { state in
            let path = "/u/\(state.uploads.count)"
            state.uploads[path] = Stored()
            return path
        }
        append(received, path, plan)
        var fields = told(path, plan)
        fields[.location] = "https://\(Self.host)\(path)"
        let isComplete = ledger.facts.uploads[path]?.isComplete ?? false
        return response(
            isComplete && plan.uploadProtocol == .ietf ? 200 : 201, fields, interim: interim ? fields : nil)
    }

    private func append(_ received: MockTransport.ReceivedRequest, _ path: String, _ plan: Plan) {
        let isLast = plan.uploadProtocol == .tus || received.request.headers[.uploadComplete] == "?1"
        let end: (data: Data, completions: Int)? = ledger.update { state in
            state.uploads[path]?.data += received.body
            guard isLast, let data = state.uploads[path]?.data, data.count == plan.content.count else { return nil }
            state.uploads[path]?.isComplete = true
            state.plans[received.request.call]?.completions += 1
            return (data, state.plans[received.request.call]?.completions ?? 0)
        }
        guard let end else { return }
        ledger.cover("upload.complete")
        if end.data != plan.content { ledger.violate(2, "the upload of call \(received.request.call) has other bytes") }
        if end.completions > 1, !plan.mayRepeat {
            ledger.violate(3, "the upload of call \(received.request.call) is completed twice")
        }
    }

    /// Tells the client how many bytes the server has.
    private func told(_ path: String, _ plan: Plan) -> HTTPFields {
        let upload = ledger.update { state in
            let count = state.uploads[path]?.data.count ?? 0
            state.uploads[path]?.told = count
            for (call, other) in state.plans where other.content == plan.content {
                state.plans[call]?.offsets.insert(Int64(count))
            }
            return state.uploads[path] ?? Stored()
        }
        var fields: HTTPFields = [.uploadOffset: "\(upload.data.count)", .uploadLength: "\(plan.content.count)"]
        if plan.uploadProtocol == .ietf { fields[.uploadComplete] = upload.isComplete ? "?1" : "?0" }
        return fields
    }

    private func response(_ status: Int, _ fields: HTTPFields = [:], interim: HTTPFields? = nil) -> MockResponse {
        ledger.cover("upload.status.\(status)")
        var steps: [MockResponse.Step] = [.pause(latency)]
        if var interim {
            interim[.uploadInteropVersion] = "8"
            interim[.uploadComplete] = nil
            steps += [.informational(.init(code: 104), interim), .pause(latency)]
        }
        return MockResponse(steps + [.head(.init(code: status), fields)])
    }

    /// The number of bytes that a request announces; a file has the rest of the whole.
    private func contentLength(_ request: Request) -> Int {
        guard [.post, .put, .patch].contains(request.method), let plan = plan(request) else { return 0 }
        return request.body.length.map { Int($0) } ?? plan.content.count - (request.uploadOffset ?? 0)
    }

    private func plan(_ request: Request) -> Plan? { ledger.facts.plans[request.call] }

    private var latency: Duration { .milliseconds(world.random(in: 0...30)) }
}

extension Request {
    fileprivate var uploadOffset: Int? { headers[.uploadOffset].flatMap { Int($0) } }
}

extension HTTPField.Name {
    // A fallback is never used: the texts are valid names.
    static let uploadOffset = HTTPField.Name("Upload-Offset") ?? .range
    fileprivate static let uploadLength = HTTPField.Name("Upload-Length") ?? .range
    fileprivate static let uploadComplete = HTTPField.Name("Upload-Complete") ?? .range
    fileprivate static let uploadLimit = HTTPField.Name("Upload-Limit") ?? .range
    fileprivate static let uploadChecksum = HTTPField.Name("Upload-Checksum") ?? .range
    fileprivate static let contentDigest = HTTPField.Name("Content-Digest") ?? .range
    fileprivate static let uploadInteropVersion = HTTPField.Name("Upload-Draft-Interop-Version") ?? .range
    fileprivate static let tusResumable = HTTPField.Name("Tus-Resumable") ?? .range
    fileprivate static let tusVersion = HTTPField.Name("Tus-Version") ?? .range
    fileprivate static let tusExtension = HTTPField.Name("Tus-Extension") ?? .range
    fileprivate static let tusChecksumAlgorithm = HTTPField.Name("Tus-Checksum-Algorithm") ?? .range
}
