// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingObservability
import CoreMetrics
import CostKit
import FoundationEssentials
import Glibc
import Logging

/// Measures the processor time and the allocations that a session adds to a request on top of its transport:
/// `PipelineCost [REQUESTS]`.
///
/// The transport responds immediately from memory, so that the figures contain nothing else. It fails if a session
/// without optional features adds more than 2 µs or an allocation, metrics without a backend more than 3 µs to that, or
/// logs at a level that is off more than 6 µs.
@main
struct PipelineCost {
    static let bar = 2.0

    static func main() async throws {
        try await run()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func run() async throws {
        let requests = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 20_000
        let cases: [Case] = [
            Case("nothing enabled") { _ in },
            Case("two interceptors") { $0.interceptors = [Passing(), Passing()] },
            Case("retries enabled") { $0.retryPolicy = RetryPolicy() },
            Case("an event monitor") { $0.eventMonitors = [Deaf()] },
            Case("metrics", bar: 3) { $0.recordMetrics(by: NOOPMetricsHandler.instance) },
            Case("logs at a level that is off", bar: 6) {
                var logger = Logger(label: "cost") { _ in SwiftLogNoOpLogHandler() }
                logger.logLevel = .critical
                $0.logRequests(to: logger)
            },
            Case("a Basic credential") { configuration in
                guard let url = URL(string: "http://127.0.0.1/") else { return }
                configuration.authentication.credentials[url] = Credential(
                    user: "ada", password: "lovelace", schemes: [.basic])
            },
        ]
        let direct = try await measure(requests) { url in
            _ = try await Self.collect(Request(url: url))
        }
        print("A request through an instant transport alone: \(direct)")
        var isSlow = false
        var plain: Cost?
        for (index, each) in cases.enumerated() {
            let manager = SessionManager(
                SessionConfiguration {
                    $0.transport = InstantTransport()
                    each.configure(&$0)
                })
            let whole = try await measure(requests) { url in _ = try await manager.data(for: Request(url: url)) }
            let added = whole - direct
            if index == 0 {
                isSlow = added.microseconds > bar || added.allocations >= 0.5
                plain = added
            }
            if let bar = each.bar, let plain {
                let more = (added - plain).microseconds
                isSlow = isSlow || more > bar
                print("With \(each.name), a request takes \((more * 10).rounded() / 10) µs more (at most \(bar) µs)")
            }
            print("A session with \(each.name) adds \(added)\(index == 0 ? " (at most \(bar) µs and none)" : "")")
        }
        let manager = SessionManager { $0.transport = InstantTransport() }
        let task = try await measure(requests) { url in
            let task = manager.makeDataTask(for: Request(url: url))
            task.resume()
            _ = try await task.value
        }
        print("A data task whose streams are not read adds \(task - direct)")
        if isSlow { exit(1) }
    }

    /// Performs ``SessionManager/data(for:)`` without a session.
    private static func collect(_ request: Request) async throws -> Response<Data> {
        try await InstantTransport().withResponse(for: request, delivery: .collected(upTo: 1 << 20)) { head, body in
            let data = try await body.collect(upTo: 1 << 20)
            return Response(data, head: head, ending: body.ending ?? ResponseEnding())
        }
    }

    /// Returns the best of five runs.
    private static func measure(_ requests: Int, _ request: (URL) async throws -> Void) async throws -> Cost {
        guard let url = URL(string: "http://127.0.0.1/small.json") else { throw CancellationError() }
        func run(_ count: Int) async throws { for _ in 0..<count { try await request(url) } }
        var best = try await Cost.measure(requests, run)
        for _ in 1..<5 { best = Cost.min(best, try await .measure(requests, run)) }
        return best
    }
}

/// A configuration of a session.
private struct Case {
    let name: String
    /// The microseconds that it may add to a session without optional features.
    let bar: Double?
    let configure: (inout SessionConfiguration) -> Void

    init(_ name: String, bar: Double? = nil, _ configure: @escaping (inout SessionConfiguration) -> Void) {
        self.name = name
        self.bar = bar
        self.configure = configure
    }
}

private struct Passing: Interceptor {
    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse { try await next(request) }
}

private struct Deaf: EventMonitor {
    func receive(_ event: TaskEvent, of task: AnySessionTask) {}
}
