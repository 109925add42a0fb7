// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

extension Fetcher {
    /// Sends the lines of standard input as messages, and prints the received messages, a line break after each text.
    ///
    /// The end of input closes the connection on a terminal; otherwise messages are printed until the server closes it.
    func converse(over job: FetchJob, after previous: OneShotEvent?, _ narrator: Narrator) async throws {
        await previous?.wait()
        narrator.goLive()
        try await session.withWebSocket(job.request) { socket in
            try await withThrowingTaskGroup(of: End.self) { group in
                group.addTask {
                    try await sendInput(over: socket)
                    return .input
                }
                group.addTask {
                    try await printMessages(of: socket, for: job)
                    return .connection
                }
                // Reading input ends with the connection.
                defer { group.cancelAll() }
                while try await group.next() == .input {}
                if let closure = socket.closure { narrator.say(closure: closure) }
            }
        }
    }

    /// What has ended: the input or, with it or before, the connection.
    private enum End {
        case input
        case connection
    }

    private func sendInput(over socket: WebSocket) async throws {
        for try await line in ResponseBody(source: InputSource()).lines(maximumLength: 16 << 20) {
            do {
                try await socket.send(.text(line))
            } catch {
                // The iteration over the messages throws the reason, unless the server has closed the connection.
                return
            }
        }
        if StandardStream.input.isTerminal { try? await socket.close() }
    }

    private func printMessages(of socket: WebSocket, for job: FetchJob) async throws {
        let refusesBinary = refusesBinary(job)
        for try await message in socket {
            switch message {
            case .text(let text): try await StandardStream.output.write(Data((text + "\n").utf8))
            case .binary where refusesBinary: throw OutputError.binary
            case .binary(let data): try await StandardStream.output.write(data)
            }
        }
    }
}

/// Standard input as a body, which has lines.
private struct InputSource: ResponseBodySource {
    var ending: ResponseEnding? { nil }

    func next() async throws -> Data? {
        var input = StandardInput().makeAsyncIterator()
        return try await input.next()
    }
}
