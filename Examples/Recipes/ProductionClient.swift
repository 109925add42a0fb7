// SPDX-License-Identifier: MIT

// A client for one service: its errors, log in, retries, limits of time, a cache, a log, and an orderly end.

import AsyncNetworking
import FoundationEssentials
import Glibc

struct Order: Codable, Sendable {
    let id: Int
    let total: Double
}

/// The client. The rest of the program knows neither URLs nor sessions.
struct Orders: Sendable {
    private let api: SessionManager

    /// Creates a client; a test passes a closure that sets another transport or clock.
    init(
        base: URL, password: String, log: AsyncStream<String>.Continuation,
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) {
        var configuration = SessionConfiguration(baseURL: base) {
            $0.headers[.userAgent] = "orders/1.0"
            $0.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
            $0.timeouts.connect = .seconds(5)
            $0.timeouts.idle = .seconds(15)
            // All attempts of a call and the waits between them.
            $0.retryPolicy = RetryPolicy(limit: 3).with { $0.deadline = .seconds(30) }
            $0.cache = .memory(16 << 20)
            $0.eventMonitors = [Log(lines: log)]
        }
        configure(&configuration)
        // A session of its own, because the other one is created with the authenticator.
        let login = SessionManager(configuration)
        configuration.authentication.authenticators = [
            Authenticator(for: [base]) { _ in
                let answer = try await login.post(
                    "token", parameters: ["password": password], as: .decodable(Token.self))
                let expires = Date(timeIntervalSinceNow: answer.value.expiresIn)
                return Authenticator.Token(answer.value.accessToken, expires: expires)
            }
        ]
        api = SessionManager(configuration)
    }

    /// Returns an order; `nil` if it does not exist.
    func order(_ id: Int) async throws -> Order? {
        do {
            return try await api.get("orders/\(id)", as: .decodable(Order.self)).value
        } catch let error as SessionError where error.statusCode == 404 {
            return nil
        }
    }

    /// Creates an order. With its key, a server that knows `Idempotency-Key` does not create it twice, so that it can be
    /// retried.
    func create(_ order: Order, key: UUID) async throws {
        try await api.post(
            "orders", body: .json(order), headers: [.idempotencyKey: key.uuidString], timeout: .seconds(20))
    }

    /// Waits for SIGTERM or SIGINT, and then for the running requests.
    func endOnSignal() async throws {
        _ = try await api.shutdownOnSignal(draining: .seconds(20))
    }
}

private struct Token: Decodable {
    let accessToken: String
    let expiresIn: Double
}

/// A line for each call that has ended, and each retry. A monitor must not block, so that a task writes the lines.
private struct Log: EventMonitor {
    let lines: AsyncStream<String>.Continuation

    func receive(_ event: TaskEvent, of task: AnySessionTask) {
        switch event {
        case .ended, .retrying: lines.yield("\(task) \(event)")
        default: break
        }
    }
}

let words = CommandLine.arguments
guard words.count == 2, let base = URL(string: words[1]) else {
    print("usage: https://…/")
    exit(2)
}
let password = ProcessInfo.processInfo.environment["ORDERS_PASSWORD"] ?? ""
let (lines, log) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingNewest(1_000))
let orders = Orders(base: base, password: password, log: log)

/// Prints an order each minute. A call that fails after its retries does not end the program.
func watch() async throws {
    while true {
        do {
            if let order = try await orders.order(7) { print(order) }
        } catch let error as SessionError {
            print(error)
        }
        try await Task.sleep(for: .seconds(60))
    }
}

// Ends with the log.
let printing = Task { for await line in lines { print(line) } }
try await withThrowingTaskGroup { group in
    group.addTask { try await orders.endOnSignal() }
    group.addTask { try await watch() }
    // Ends with the signal, or with an error that no call has thrown.
    try await group.next()
    group.cancelAll()
}
// The lines that are left.
log.finish()
await printing.value
