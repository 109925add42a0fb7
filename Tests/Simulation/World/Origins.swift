// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// The servers of a simulated world, and the faults of the network before them.
struct Origins: Sendable {
    static let hosts = ["a.test", "b.test", "c.test"]
    /// The path of what each server sends soon, without faults.
    static let quick = "quick"
    let world: SimulatedWorld
    let ledger: Ledger
    let program: Program
    let routes: Routes
    private var seed: UInt64 { program.seed }
    private var settings: Program.Settings { program.settings }
    private var uploads: UploadOrigin { UploadOrigin(world: world, ledger: ledger, settings: settings) }

    enum Fault: String, CaseIterable, Sendable {
        case refused, unreachable, lostUnseen, lostProcessed, silent, silentProcessed, cutHead, cutBody, stalledBody
        case status408, status421, status425, status429, status500, status502, status503, status503Long
        case interim, slow, wrongRange, ignoredRange, ignoredCondition, wrongConfirmation, cutEnd

        /// Those that occur in the families of programs that were there first, whose seeds they must not change.
        static let first = allCases.filter { $0 != .cutEnd }
        /// Those that downloads meet more often than others.
        static let ofDownloads = [
            Fault.cutBody, .cutBody, .cutBody, .stalledBody, .wrongRange, .wrongRange, .ignoredRange, .ignoredCondition,
            .ignoredCondition,
        ]
    }

    func answer(_ received: MockTransport.ReceivedRequest) async throws -> MockResponse {
        let request = received.request
        if UploadOrigin.serves(request) { return uploads.answer(received) }
        if request.url.path == "/\(Self.quick)" { return MockResponse([.pause(latency), .head(.ok)]) }
        let index = arrive(request)
        if let end = routes.outageEnd {
            ledger.cover("fault.noRoute")
            ledger.update { $0.arrivals[index].outageEnd = end }
            return failing(index, .noRoute, world.chance(0.7) ? .cannotConnect(.unreachable) : .cannotResolve)
        }
        if let expected = ledger.body(of: request) { judge(received.body, expected, index) }
        if request.webSocketOptions != nil { return socket(request, index) }
        if request.messageCount > 0 {
            ledger.violate(2, "call \(request.call) does not ask for its WebSocket connection")
        }
        if program.family == .failures, world.chance(settings.faultRate) { return fail(request, index) }
        let isDownload = [.downloads, .segments].contains(program.family) && world.chance(0.7)
        let faults =
            isDownload ? Fault.ofDownloads : [.mixed, .races].contains(program.family) ? Fault.allCases : Fault.first
        let faultRate = program.family == .failures ? 0 : settings.faultRate
        let fault = world.chance(faultRate) ? faults[world.random(in: 0...faults.count - 1)] : nil
        if let fault { ledger.cover("fault.\(fault.rawValue)") }
        switch fault {
        case .refused?: return failing(index, .refused, .cannotConnect(.refused))
        case .unreachable?:
            // An outage may begin before the failure is known.
            return failing(
                index, settings.waitsForConnectivity ? .noRoute : .refused, .cannotConnect(.unreachable))
        case .lostUnseen?: return failing(index, .lost, .connectionLost(.whileSending))
        case .lostProcessed?:
            _ = process(request, index, fault)
            return failing(index, .lost, .connectionLost(.beforeResponse))
        case .silent?: return MockResponse([.hang])
        case .silentProcessed?:
            _ = process(request, index, fault)
            return MockResponse([.hang])
        case .status408?: return refusing(index, 408)
        case .status421?: return refusing(index, 421)
        case .status425?: return refusing(index, 425)
        case .status429?: return refusing(index, 429, retryAfter: world.random(in: 0...3))
        case .status500?: return refusing(index, 500)
        case .status502?: return refusing(index, 502)
        case .status503?: return refusing(index, 503, retryAfter: world.random(in: 1...5))
        case .status503Long?: return refusing(index, 503, retryAfter: 90)
        case .interim?, .slow?, .cutHead?, .cutBody?, .stalledBody?, .wrongRange?, .ignoredRange?,
            .ignoredCondition?, .wrongConfirmation?, .cutEnd?, nil:
            return respond(process(request, index, fault), to: request, index, fault)
        }
    }

    private func arrive(_ request: Request) -> Int {
        let index = ledger.arrive(request)
        Oracles.judge(arrival: index, ledger, settings)
        Oracles.concurrency(of: index, program, ledger)
        return index
    }

    /// A server that does not answer early has the whole body.
    private func judge(_ body: Data, _ expected: Data, _ index: Int) {
        ledger.cover("oracle.2.upload")
        let request = ledger.facts.arrivals[index].request
        let isEarly = ledger.update { $0.answeredEarly.remove(Self.exchange(request)) } != nil
        guard isEarly ? !expected.starts(with: body) : body != expected else { return }
        ledger.violate(2, "the server receives another body of call \(Self.exchange(request))")
    }

    /// A name for the exchange of a request, of which no other one is open.
    private static func exchange(_ request: Request) -> String {
        "\(request.call)\(request.sequence)"
    }

    /// How a server receives the body of a request.
    func receive(_ request: Request) -> MockTransport.Reception {
        if UploadOrigin.serves(request) { return uploads.receive(request) }
        guard let expected = ledger.body(of: request), !expected.isEmpty, routes.outageEnd == nil else {
            return .complete
        }
        guard world.chance(settings.uploadFaultRate) else { return receiveMeanwhile(request, expected) }
        let count = world.random(in: 0...expected.count)
        switch world.random(in: 0...2) {
        case 0:
            ledger.cover("fault.upload.answered")
            ledger.update { _ = $0.answeredEarly.insert(Self.exchange(request)) }
            return .answered(after: count)
        case 1:
            ledger.cover("fault.upload.reset")
            let index = arrive(request)
            ledger.update { $0.arrivals[index].outcome = .lost }
            return .failing(after: count, TransportError(.connectionLost(.whileSending)))
        default:
            ledger.cover("fault.upload.silent")
            _ = arrive(request)
            return .silent(after: count)
        }
    }

    /// The server may answer while it receives the body.
    private func receiveMeanwhile(_ request: Request, _ expected: Data) -> MockTransport.Reception {
        guard settings.answersMeanwhile, case .writer = request.body.content, world.chance(0.7) else {
            return .complete
        }
        ledger.cover("fault.upload.meanwhile")
        ledger.update { _ = $0.answeredEarly.insert(Self.exchange(request)) }
        return .answeredMeanwhile(after: world.random(in: 0...expected.count)) { [ledger] body in
            ledger.cover("oracle.2.meanwhile")
            if body != expected {
                ledger.violate(2, "the server receives another body of call \(Self.exchange(request)) in the end")
            }
        }
    }

    private func failing(
        _ index: Int, _ outcome: Ledger.Arrival.Outcome, _ reason: TransportError.Reason
    ) -> MockResponse {
        ledger.update { $0.arrivals[index].outcome = outcome }
        return MockResponse([.pause(latency), .fail(TransportError(reason))])
    }

    /// An answer without an effect on the server.
    private func refusing(_ index: Int, _ status: Int, retryAfter: Int? = nil) -> MockResponse {
        ledger.update { state in
            state.arrivals[index].outcome = .status(status)
            state.arrivals[index].retryAfter = retryAfter
        }
        ledger.cover("status.\(status)")
        var headers: HTTPFields = [.contentLength: "4", .cacheControl: "no-store"]
        if let retryAfter {
            headers[.retryAfter] =
                world.chance(0.5) ? "\(retryAfter)" : HTTPDateText.text(ledger.date / 1_000 + Int64(retryAfter))
        }
        return MockResponse([
            .pause(latency), .head(HTTPResponse.Status(code: status), headers), .chunk(Data("busy".utf8)),
        ])
    }

    private var latency: Duration { .milliseconds(world.random(in: 0...30)) }

    // MARK: Failures

    /// Fails an exchange at any of its places, or rejects the request with a body that takes its time.
    private func fail(_ request: Request, _ index: Int) -> MockResponse {
        var place = Failure.Place.allCases[world.random(in: 0...3)]
        if world.chance(0.3) { return rejecting(index) }
        if place == .connection {
            return MockResponse([.pause(latency), .fail(failure(.connection, at: index))])
        }
        let answer = process(request, index, nil)
        let hasBody = request.method != .head && answer.status / 100 == 2 && !answer.body.isEmpty
        if !hasBody { place = .head }
        var response = respond(answer, to: request, index, nil)
        if place == .head {
            let interim: [MockResponse.Step] = world.chance(0.3) ? [.informational(.earlyHints)] : []
            response.steps = [.pause(latency)] + interim + [.pause(latency), .fail(failure(.head, at: index))]
            return response
        }
        // After the head, so many chunks, each with a pause before it.
        let count = (response.steps.count - 2) / 2
        if place == .body { response.steps = Array(response.steps.prefix(2 + 2 * world.random(in: 0...count - 1))) }
        let received = response.steps.reduce(Int64(0)) {
            if case .chunk(let data) = $1 { $0 + Int64(data.count) } else { $0 }
        }
        let expected = answer.headers[.contentLength].flatMap { Int64($0) }
        response.steps += [.pause(latency), .fail(failure(place, at: index, after: received, of: expected))]
        return response
    }

    private func failure(
        _ place: Failure.Place, at index: Int, after received: Int64 = 0, of expected: Int64? = nil
    ) -> TransportError {
        ledger.cover("failure.\(place)")
        let failure = Failure.random(at: place, after: received, of: expected, in: world)
        ledger.update { state in
            state.arrivals[index].failure = failure
            if place == .connection || place == .head {
                state.arrivals[index].outcome = failure.mayBeSeen ? .lost : .refused
            }
        }
        return TransportError(failure.reason)
    }

    private func rejecting(_ index: Int) -> MockResponse {
        let status = ErrorPage.statuses[world.random(in: 0...ErrorPage.statuses.count - 1)]
        ledger.update { $0.arrivals[index].outcome = .status(status) }
        let chunks: [MockResponse.Step] = ErrorPage.chunks(status).flatMap { chunk -> [MockResponse.Step] in
            [.pause(.milliseconds(world.random(in: 0...100))), .chunk(chunk)]
        }
        return MockResponse(
            [.pause(latency), .head(.init(code: status), [.errorPage: "1", .cacheControl: "no-store"])] + chunks)
    }

    // MARK: Processing

    private struct Answer {
        var status: Int
        var headers: HTTPFields
        var body: Data
    }

    private func process(_ request: Request, _ index: Int, _ fault: Fault?) -> Answer {
        var answer = makeAnswer(request, index, fault)
        answer.headers[.date] = HTTPDateText.text(ledger.date / 1_000)
        let (status, now, date) = (answer.status, ledger.now, ledger.date)
        ledger.cover("status.\(status)")
        let headers = answer.headers
        let id: Int = ledger.update { state in
            state.arrivals[index].outcome = .status(status)
            state.arrivals[index].processed = (200..<300).contains(status)
            guard status == 200 else { return 0 }
            let id = state.responses.count + 1
            state.arrivals[index].responseID = id
            state.responses[id] = ServedResponse(
                id: id, url: request.url.absoluteString,
                partition: request.call == 0 ? Runner.partition(0, settings) : request.partition,
                method: request.method, status: status, headers: headers,
                request: request.headers, time: now, dates: [date])
            return id
        }
        if id > 0 { answer.headers[.responseID] = "\(id)" }
        return answer
    }

    private func makeAnswer(_ request: Request, _ index: Int, _ fault: Fault?) -> Answer {
        guard let resource = Resource(request.url, seed: seed) else {
            return Answer(status: 404, headers: [:], body: Data())
        }
        if resource.host == "a.test", settings.usesTokens, !hasValidToken(request) {
            return Answer(status: 401, headers: [.wwwAuthenticate: "Bearer"], body: Data())
        }
        if resource.host == "b.test", resource.number == 4, request.headers[.authorization] != Self.basic {
            return Answer(status: 401, headers: [.wwwAuthenticate: "Basic realm=\"b\""], body: Data())
        }
        if let redirect = resource.redirect, request.headers[.accept] != "text/event-stream" {
            return Answer(status: redirect.status, headers: [.location: redirect.to.url], body: Data("moved".utf8))
        }
        guard request.method == .get || request.method == .head else {
            return Answer(status: 200, headers: [.cacheControl: "no-store"], body: Data("done".utf8))
        }
        if request.headers[.accept] == "text/event-stream" { return events(request, resource) }
        return content(request, resource, index, fault)
    }

    private func hasValidToken(_ request: Request) -> Bool {
        let date = ledger.date
        let token = request.headers[.authorization].map { String($0.dropFirst(7)) } ?? ""
        let isRevoked = world.chance(settings.faultRate / 3)
        return ledger.update { state in
            if isRevoked { state.revokedTokens.insert(token) }
            let isValid = !state.revokedTokens.contains(token) && state.tokens[token]?.expires ?? 0 > date
            if !isValid { state.refusedTokens.insert(token) }
            return isValid
        }
    }

    static let basic = "Basic \(Data("user:secret".utf8).base64EncodedString())"

    /// The next events after that of the request, of which the stream has twenty.
    private func events(_ request: Request, _ resource: Resource) -> Answer {
        let last = request.headers[.lastEventID].flatMap { Int($0) } ?? 0
        if last >= 20 { return Answer(status: 204, headers: [:], body: Data()) }
        let end = min(20, last + 1 + world.random(in: 0...7))
        let text = last < end ? ((last + 1)...end).map { "id: \($0)\ndata: \(resource.number)-\($0)\n\n" }.joined() : ""
        return Answer(
            status: 200, headers: [.contentType: "text/event-stream"], body: Data("retry: 10\n\n\(text)".utf8))
    }

    private func content(_ request: Request, _ resource: Resource, _ index: Int, _ fault: Fault?) -> Answer {
        let language = resource.varies ? request.headers[.language].map { "-\($0)" } ?? "" : ""
        let version = resource.version(at: ledger.date)
        var headers: HTTPFields = [:]
        headers[.cacheControl] = resource.cacheControl
        headers[.eTag] = resource.entityTag(version, language: language)
        if resource.varies { headers[.vary] = "X-Language" }
        if resource.validator == .date {
            headers[.lastModified] = HTTPDateText.text(1_000_000_000 + Int64(version) * 60)
        }
        let body = resource.content(version, language: language)
        if let tag = headers[.eTag], request.headers[.ifNoneMatch] == tag {
            if fault == .wrongConfirmation {
                return Answer(status: 304, headers: [.eTag: "\"other\""], body: Data())
            }
            confirm(request, tag, index)
            return Answer(status: 304, headers: headers, body: Data())
        }
        if let date = headers[.lastModified], request.headers[.ifModifiedSince] == date,
            request.headers[.ifNoneMatch] == nil
        {
            confirm(request, date, index)
            return Answer(status: 304, headers: headers, body: Data())
        }
        headers[.acceptRanges] = resource.supportsRanges ? "bytes" : nil
        guard resource.supportsRanges, fault != .ignoredRange, let (first, last) = range(of: request) else {
            // Without a length, only the end of the connection tells that of the body.
            if fault != .cutEnd { headers[.contentLength] = "\(body.count)" }
            return Answer(status: 200, headers: headers, body: body)
        }
        let condition = request.headers[.ifRange]
        if let condition, fault != .ignoredCondition, condition != headers[.eTag], condition != headers[.lastModified] {
            headers[.contentLength] = "\(body.count)"
            return Answer(status: 200, headers: headers, body: body)
        }
        guard first < body.count else {
            return Answer(status: 416, headers: [.contentRange: "bytes */\(body.count)"], body: Data())
        }
        // Before or after the one that was requested.
        let wrong = first % 2 == 0 ? first / 2 : min(first + 1 + (body.count - first) / 2, body.count - 1)
        let start = fault == .wrongRange ? wrong : first
        let end = max(start, min(last, body.count - 1))
        headers[.contentRange] = "bytes \(start)-\(end)/\(body.count)"
        headers[.contentLength] = "\(end + 1 - start)"
        var part = Data(body.prefix(end + 1).dropFirst(start))
        if settings.lieRate > 0, world.chance(settings.lieRate) {
            ledger.cover("download.lied")
            part[world.random(in: 0...part.count - 1)] ^= 1
        }
        return Answer(status: 206, headers: headers, body: part)
    }

    private func range(of request: Request) -> (first: Int, last: Int)? {
        guard let range = request.headers[.range], range.hasPrefix("bytes=") else { return nil }
        let ends = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int(ends[0]) else { return nil }
        return (first, Int(ends[1]) ?? .max)
    }

    /// Notes that stored responses with a validator are valid still.
    private func confirm(_ request: Request, _ validator: String, _ index: Int) {
        let (date, url) = (ledger.date, request.url.absoluteString)
        ledger.update { state in
            state.arrivals[index].isConfirmation = true
            for (id, response) in state.responses where response.url == url {
                guard [response.headers[.eTag], response.headers[.lastModified]].contains(validator) else { continue }
                state.responses[id]?.dates.append(date)
            }
        }
    }

    // MARK: WebSockets

    /// The server's end of a WebSocket: it sends some messages back, sends others, and ends the connection.
    private func socket(_ request: Request, _ index: Int) -> MockResponse {
        if world.chance(settings.faultRate) {
            switch world.random(in: 0...3) {
            case 0: return failing(index, .refused, .cannotConnect(.refused))
            case 1: return failing(index, .lost, .connectionLost(.beforeResponse))
            case 2: return MockResponse([.hang])
            default: return refusing(index, 503, retryAfter: world.random(in: 0...2))
            }
        }
        if request.url.host() == "a.test", settings.usesTokens, !hasValidToken(request) {
            ledger.update { $0.arrivals[index].outcome = .status(401) }
            return MockResponse(status: .unauthorized, headers: [.wwwAuthenticate: "Bearer"])
        }
        let ending = SocketEnding.allCases[world.random(in: 0...SocketEnding.allCases.count - 1)]
        ledger.cover("socket.\(ending)")
        ledger.update { state in
            state.arrivals[index].outcome = .status(101)
            state.arrivals[index].socketEnding = ending
        }
        let count = request.messageCount
        var actions: [Script.Action] = [.delay(latency), .acceptWebSocket()]
        if ending == .cut {
            actions.append(.disconnect(afterBytes: Int64(world.random(in: 0...60)), by: .reset))
        }
        actions.append(.echoMessages(count))
        for number in 0..<count { actions += [.delay(latency), .message(.text("server \(number)"))] }
        return MockResponse(Script(actions + ending.actions(after: latency)))
    }

    // MARK: Sending

    private func respond(_ answer: Answer, to request: Request, _ index: Int, _ fault: Fault?) -> MockResponse {
        var steps: [MockResponse.Step] = [.pause(fault == .slow ? .milliseconds(1_500) : latency)]
        if fault == .interim { steps.append(.informational(.earlyHints)) }
        if fault == .cutHead {
            ledger.update { $0.arrivals[index].outcome = .lost }
            return MockResponse(steps + [.fail(TransportError(.connectionLost(.inHead)))])
        }
        steps.append(.head(HTTPResponse.Status(code: answer.status), answer.headers))
        // A body that is cut has several chunks, of which only the last one is lost.
        let isCut = fault == .cutBody || fault == .stalledBody
        var rest = answer.body[...]
        while !rest.isEmpty {
            let count = min(rest.count, world.random(in: 1...max(1, answer.body.count / (isCut ? 3 : 1))))
            steps += [.pause(latency), .chunk(Data(rest.prefix(count)))]
            rest = rest.dropFirst(count)
        }
        // A head alone cannot be cut: the end of a response without a body follows from it.
        guard request.method != .head, ![204, 304].contains(answer.status), !answer.body.isEmpty else {
            return MockResponse(steps)
        }
        if isCut || fault == .cutEnd {
            if isCut { steps.removeLast(2) }
            let sent = steps.reduce(Int64(0)) { if case .chunk(let data) = $1 { $0 + Int64(data.count) } else { $0 } }
            let loss = TransportError(
                .connectionLost(.inBody(received: sent, expected: answer.headers[.contentLength].flatMap { Int64($0) }))
            )
            steps.append(fault == .stalledBody ? .hang : .fail(loss))
        }
        return MockResponse(steps)
    }
}

/// The text of a date in header fields (RFC 9110 §5.6.7).
enum HTTPDateText {
    static func text(_ seconds: Int64) -> String {
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let (days, time) = seconds.quotientAndRemainder(dividingBy: 86_400)
        // Years of 365 or 366 days from 1970, and months of them: the world lives in this century.
        var (year, day) = (Int64(1970), days)
        func isLeap(_ year: Int64) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }
        while day >= (isLeap(year) ? 366 : 365) {
            day -= isLeap(year) ? 366 : 365
            year += 1
        }
        var month = 0
        let lengths: [Int64] = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        while day >= lengths[month] {
            day -= lengths[month]
            month += 1
        }
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][Int(days % 7)]
        let name = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][month]
        return "\(weekday), \(two(day + 1)) \(name) \(year) "
            + "\(two(time / 3_600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }
}
