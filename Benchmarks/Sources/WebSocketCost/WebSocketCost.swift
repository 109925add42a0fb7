// SPDX-License-Identifier: MIT

import AsyncNetworking
import ClientKit
import Foundation
import ServerKit

/// Measures WebSocket connections, and fails if a limit is exceeded: `WebSocketCost [MESSAGES [CONNECTIONS]]`.
///
/// - The echoed messages of 64 bytes per second over one connection, against the asynchronous client of swift-nio:
///   one at a time, and with as many in flight as the connection accepts. The figures are medians of 31 short rounds,
///   each of which measures both clients.
/// - The memory of 10,000 idle connections, or of another number of them in proportion.
@main
struct WebSocketCost {
    static func main() async throws {
        try await run()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func run() async throws {
        let numbers = CommandLine.arguments.dropFirst().compactMap { Int($0) }
        let messages = numbers.first ?? 20_000
        ThisProcess.raiseDescriptorLimit()
        let programs = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        let server = try BenchServer(program: programs.appending(path: "BenchServer"))
        var bars = Bars()
        // First, because memory that was freed before would be used again.
        try await measureIdleConnections(numbers.dropFirst().first ?? 10_000, server.port, &bars)
        try await measureEchoes(messages, server.port, &bars)
        if bars.isAnyMissed { exit(1) }
    }

    private static func session() -> SessionManager {
        SessionManager {
            $0.proxy = .none
            $0.connectionLimits.maximumConnections = nil
            $0.connectionLimits.maximumLongLivedPerHost = 20_000
        }
    }

    // MARK: Echoes

    private static func measureEchoes(_ messages: Int, _ port: Int, _ bars: inout Bars) async throws {
        guard let url = URL(string: "ws://127.0.0.1:\(port)/") else { throw CancellationError() }
        let session = session()
        var ours: [Echoes] = []
        var rival: [Echoes] = []
        for _ in 0..<31 {
            rival.append(try await NIOEcho.measure(messages, port: port))
            ours.append(
                try await session.withWebSocket(Request(url: url)) { socket in
                    try await measure(messages, socket)
                })
        }
        await session.shutdown()
        let rates = [("one at a time", \Echoes.single, 1.0), ("in a stream", \.stream, 0.5)]
        for (name, rate, bar) in rates {
            let (ours, rival) = (ours.map { $0[keyPath: rate] }, rival.map { $0[keyPath: rate] })
            bars.check(
                "Echoes \(name): \(Int(median(ours)))/s, swift-nio \(Int(median(rival)))/s; relative time",
                median(zip(ours, rival).map { $1 / $0 }), atMost: bar)
        }
    }

    private static func measure(_ messages: Int, _ socket: WebSocket) async throws -> Echoes {
        let message = WebSocketMessage.binary(Data(repeating: 7, count: Echoes.size))
        var iterator = socket.makeAsyncIterator()
        let single = try await Echoes.rate(messages / 10) { count in
            for _ in 0..<count {
                try await socket.send(message)
                guard try await iterator.next() == message else { throw Failure("another message was echoed") }
            }
        }
        let stream = try await Echoes.rate(messages) { count in
            async let sending: Void = {
                for _ in 0..<count { try await socket.send(message) }
            }()
            for _ in 0..<count {
                guard try await iterator.next() == message else { throw Failure("another message was echoed") }
            }
            try await sending
        }
        return Echoes(single: single, stream: stream)
    }

    private static func median(_ values: [Double]) -> Double {
        values.sorted()[values.count / 2]
    }

    // MARK: Idle connections

    private static func measureIdleConnections(_ count: Int, _ port: Int, _ bars: inout Bars) async throws {
        guard let url = URL(string: "ws://127.0.0.1:\(port)/") else { throw CancellationError() }
        let session = session()
        let message = WebSocketMessage.binary(Data(repeating: 7, count: Echoes.size))
        let before = try ThisProcess.residentMemory()
        let (opened, opening) = AsyncStream.makeStream(of: Void.self)
        let (gate, gatekeeper) = AsyncStream.makeStream(of: Void.self)
        let release = Task { for await _ in gate {} }
        let memory = try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<count {
                group.addTask {
                    try await session.withWebSocket(Request(url: url)) { socket in
                        opening.yield()
                        await release.value
                        try await socket.send(message)
                        guard try await socket.first(where: { _ in true }) == message else {
                            throw Failure("another message was echoed")
                        }
                    }
                }
            }
            var left = count
            for await _ in opened where left > 0 {
                left -= 1
                if left == 0 { break }
            }
            let memory = try ThisProcess.residentMemory() - before
            gatekeeper.finish()
            try await group.waitForAll()
            return memory
        }
        await session.shutdown()
        bars.check("Memory of \(count) idle connections in MB", memory / 1e6, atMost: 250 * Double(count) / 10_000)
    }
}

/// The echoed messages per second of a client.
struct Echoes {
    /// The size of a message in bytes.
    static let size = 64

    var single: Double
    var stream: Double

    static func rate(_ count: Int, _ echo: (Int) async throws -> Void) async throws -> Double {
        let start = ContinuousClock.now
        try await echo(count)
        return Double(count) / ((ContinuousClock.now - start) / .seconds(1))
    }
}
