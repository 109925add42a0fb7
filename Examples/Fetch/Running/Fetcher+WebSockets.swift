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
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    let lines = ResponseBody(source: InputSource()).lines
                    for try await line in lines { try await socket.send(.text(line)) }
                    if StandardStream.input.isTerminal { try await socket.close() }
                }
                // Reading input ends with the connection.
                defer { group.cancelAll() }
                for try await message in socket {
                    switch message {
                    case .text(let text): try StandardStream.output.write(Data((text + "\n").utf8))
                    case .binary(let data): try StandardStream.output.write(data)
                    }
                }
                if let closure = socket.closure { narrator.say(closure: closure) }
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
