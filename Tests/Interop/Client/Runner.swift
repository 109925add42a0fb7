// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

/// A runner of the rounds of a scenario.
struct Runner: Sendable {
    let scenario: Scenario

    /// Performs all rounds and counts their outcomes.
    func run() async throws -> Outcomes {
        let shared = SessionManager(try configuration())
        let workers = min(scenario.workers ?? 1, scenario.rounds)
        return try await withThrowingTaskGroup { group in
            for worker in 0..<workers {
                let manager = scenario.gaps == nil ? shared : SessionManager(try configuration())
                group.addTask { try await work(worker, of: workers, manager) }
            }
            return try await group.reduce(into: Outcomes()) { $0.add($1) }
        }
    }

    private func work(_ worker: Int, of workers: Int, _ manager: SessionManager) async throws -> Outcomes {
        var outcomes = Outcomes()
        if scenario.gaps != nil { _ = try await round("warm-\(worker)", manager) }
        for number in stride(from: worker, to: scenario.rounds, by: workers) {
            if let gaps = scenario.gaps, let shortest = gaps.first, let longest = gaps.last {
                try await Task.sleep(for: .seconds(Double.random(in: shortest...longest)))
            }
            let own = scenario.isFresh == true ? SessionManager(try configuration()) : manager
            outcomes.add(try await round("\(number)", own))
        }
        return outcomes
    }

    private func round(_ number: String, _ manager: SessionManager) async throws -> Outcome {
        var outcome: Outcome?
        for (index, step) in scenario.steps.enumerated() {
            let id = "\(scenario.id)-\(number)-\(index)"
            let next: Outcome
            do {
                let request = try request(step, id: id)
                if step.isResumed == true {
                    next = try await resume(request, step, manager, to: "\(scenario.directory ?? "/tmp")/\(id)")
                } else {
                    next = try await perform(request, step, manager)
                }
            } catch let failure as ScenarioError {
                throw failure
            } catch {
                next = Outcome(error)
            }
            outcome?.append(next)
            outcome = outcome ?? next
        }
        return outcome ?? Outcome("no step")
    }

    private func perform(_ request: Request, _ step: Scenario.Step, _ manager: SessionManager) async throws -> Outcome {
        let interim = InterimStatuses()
        let response: Response<Data>
        if step.interim == nil {
            response = try await manager.data(for: request)
        } else {
            response = try await manager.withResponse(for: request, reporting: interim) { head, body in
                Response(try await body.collect(upTo: 1 << 20), head: head, ending: body.ending ?? ResponseEnding())
            }
        }
        var label = "\(response.statusCode)"
        if let size = step.size, response.value.count != size { label += " with \(response.value.count) bytes" }
        if let received = step.received, response.statusCode == 200 {
            let sink = try? JSONDecoder().decode(SinkAnswer.self, from: response.value)
            if sink?.received != received { label += " received \(sink?.received ?? -1)" }
        }
        if let status = step.interim, await !interim.contains(status) { label += " without \(status)" }
        // An intermediary may merge trailers into the head (RFC 9110 §6.5.1).
        if let trailer = step.trailer,
            !(Array(response.trailers) + Array(response.head.headers)).contains(where: {
                $0.name.canonicalName == trailer
            })
        {
            label += " without trailer"
        }
        return Outcome(label, metrics: response.metrics)
    }

    /// Cancels a download halfway and resumes it.
    private func resume(
        _ request: Request, _ step: Scenario.Step, _ manager: SessionManager, to path: String
    ) async throws -> Outcome {
        defer { try? FileManager.default.removeItem(atPath: path) }
        let half = Int64(step.size ?? 0) / 2
        let download = manager.download(request, to: .file(path))
        var data: ResumeData?
        for await progress in download.progress where progress.completedBytes >= half {
            data = await download.cancelProducingResumeData()
            break
        }
        guard let data else {
            return Outcome("\(try await download.value.response.statusCode) before it was cancelled")
        }
        let file = try await manager.download(resuming: data).value
        let isWhole = file.size == Int64(step.size ?? 0)
        return Outcome("\(file.response.statusCode)" + (isWhole ? "" : " with \(file.size) bytes"))
    }

    private func request(_ step: Scenario.Step, id: String) throws -> Request {
        guard let url = URL(string: step.url), let method = HTTPRequest.Method(step.method) else {
            throw ScenarioError("\(step.method) \(step.url) is not a request")
        }
        var request = Request(method: method, url: url)
        guard let name = HTTPField.Name("X-Request-ID") else { throw ScenarioError("not a field name") }
        request.headers[name] = id
        if let size = step.body {
            let bytes = Data(repeating: 0x61, count: size)
            request.body =
                step.isStream == true ? .stream(OneChunk(bytes: bytes), isReplayable: true) : .bytes(bytes)
        }
        if let timeout = step.continueTimeout {
            request.changeOptions { $0.expectContinueTimeout = .seconds(timeout) }
        }
        return request
    }

    private func configuration() throws -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.timeouts.total = .seconds(15)
        if let path = scenario.authority { configuration.tls.trustRoots = .file(path) }
        if let version = scenario.version { configuration.httpVersion = version == 1 ? .http1 : .http2 }
        if let retries = scenario.retries {
            configuration.retryPolicy = RetryPolicy(limit: retries).with {
                $0.backoff = Backoff(base: .milliseconds(50), maximum: .seconds(1))
                $0.budget = nil
            }
        }
        if let certificates = scenario.certificates {
            configuration.tls.identity = .pem(
                certificates: .file(certificates), key: scenario.key.map { .file($0) })
        }
        if let proxy = scenario.proxy {
            guard let url = URL(string: proxy), let host = url.host(), let port = url.port else {
                throw ScenarioError("\(proxy) is not a proxy")
            }
            var address = Proxy(.http, host: host, port: port)
            if let texts = scenario.proxyCredential, texts.count > 2 {
                let schemes = texts.dropFirst(2).map { $0 == "digest" ? AuthenticationScheme.digest : .basic }
                address.credential = Credential(user: texts[0], password: texts[1], schemes: Set(schemes))
            }
            configuration.proxy = .proxy(address)
        }
        if let credential = scenario.credential, credential.count == 2 {
            for step in scenario.steps {
                guard let url = URL(string: step.url) else { continue }
                configuration.authentication.credentials[url] = Credential(user: credential[0], password: credential[1])
            }
        }
        return configuration
    }
}

/// An error in a scenario, with a description.
struct ScenarioError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// The response of the servers' `/sink`.
private struct SinkAnswer: Decodable {
    let received: Int
}

/// A body of one chunk that can be iterated repeatedly.
private struct OneChunk: AsyncSequence, Sendable {
    let bytes: Data

    func makeAsyncIterator() -> Iterator {
        Iterator(rest: bytes)
    }

    struct Iterator: AsyncIteratorProtocol {
        var rest: Data?

        mutating func next() async throws -> Data? {
            defer { rest = nil }
            return rest
        }
    }
}

/// An event sink that collects the status codes of interim responses.
private final class InterimStatuses: ExchangeEventSink {
    private let statuses: AsyncStream<Int>
    private let continuation: AsyncStream<Int>.Continuation

    init() {
        (statuses, continuation) = AsyncStream.makeStream(of: Int.self)
    }

    func receive(_ event: ExchangeEvent) {
        if case .informational(let head) = event { continuation.yield(head.status.code) }
    }

    /// Returns whether an interim response had this status code. Call it once, after the response.
    func contains(_ status: Int) async -> Bool {
        continuation.finish()
        return await statuses.contains(status)
    }
}
