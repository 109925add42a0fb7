// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

extension Fetcher {
    /// Prints the data of a job's server-sent events, a line break after each, until the server ends the stream.
    func printEvents(of job: FetchJob, after previous: OneShotEvent?, _ narrator: Narrator) async throws {
        await previous?.wait()
        narrator.goLive()
        var request = job.request
        // Of a source, it would limit each connection.
        request.timeout = nil
        let source = session.events(for: request)
        try await withThrowingTaskGroup { group in
            group.addTask {
                async let told: Void = tell(source.statuses, narrator)
                for try await event in source {
                    try await StandardStream.output.write(Data((event.data + "\n").utf8))
                }
                await told
            }
            if let timeout = job.request.timeout {
                group.addTask {
                    try await Task.sleep(for: timeout)
                    throw SessionError.transport(TransportError(.timedOut(.responseBody)))
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func tell(_ statuses: BroadcastStream<EventSource.Status>, _ narrator: Narrator) async {
        for await status in statuses {
            switch status {
            case .open(let head): narrator.say(head: head)
            case .waiting(let end, let error) where !output.isSilent:
                let reason = error.map { "\($0)" } ?? "The server ended the response."
                let wait = Quantity.time(.seconds(max(0, end.timeIntervalSinceNow)))
                narrator.tell("fetch: \(reason) Reconnecting in \(wait).\n")
            default: break
            }
        }
    }

    /// Prints the valid lines of a body unchanged, and reports the others.
    func printJSONLines(of body: ResponseBody, _ narrator: Narrator) async throws {
        let lines = body.jsonLines(of: Data.self, decoder: UnchangedJSON()) { failure in
            narrator.tell("fetch: \(failure)\n")
        }
        for try await line in lines { try await StandardStream.output.write(line + [UInt8(ascii: "\n")]) }
    }
}

/// A decoder that checks JSON and returns its bytes.
private struct UnchangedJSON: ResponseDecoder {
    private struct Anything: Decodable {
        init(from decoder: any Decoder) {}
    }

    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        _ = try JSONDecoder().decode(Anything.self, from: data)
        guard let data = data as? Value else {
            throw DecodingError.typeMismatch(type, .init(codingPath: [], debugDescription: "The bytes are data."))
        }
        return data
    }

    func formatError(in data: Data) -> SerializationError? {
        JSONDecoder().formatError(in: data)
    }
}
