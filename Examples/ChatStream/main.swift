// SPDX-License-Identifier: MIT

// Asks a language model and prints its answer while it is generated; Ctrl-C stops the answer:
//
//     swift run ChatStream             a server in this process
//     swift run ChatStream URL [KEY]   a service with the interface of OpenAI's chat completions

import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import FoundationEssentials
import Glibc

/// The part of an event that this program prints.
struct Delta: Decodable {
    struct Choice: Decodable {
        struct Message: Decodable {
            let content: String?
        }
        let delta: Message
    }
    let choices: [Choice]
}

func ask(_ question: String, at url: URL, key: String?) async throws {
    let message: Parameters = ["role": "user", "content": question]
    try await withSession(configure: { $0.requestSerializer = .json }) { api in
        var request = try api.request(
            .post, url.absoluteString, parameters: ["model": "small", "stream": true, "messages": [message]])
        if let key { request.headers[.authorization] = "Bearer \(key)" }
        for try await event in api.events(for: request) {
            // The service announces the end by text instead of JSON.
            guard event.data != "[DONE]" else { break }
            let text = try event.decoded(as: Delta.self).choices.first?.delta.content
            print(text ?? "", terminator: "")
            _ = fflush(nil)
        }
        print()
    }
}

/// Answers with one event for each word.
func answer(_ question: RecordedRequest) -> Script {
    let words = ["Streams", " of", " events", " are", " text", " with", " empty", " lines", " between", " them."]
    let events = words.map { ServerSentEvent(data: #"{"choices":[{"delta":{"content":"\#($0)"}}]}"#) }
    return .events(events + [ServerSentEvent(data: "[DONE]")], every: .milliseconds(50))
}

/// Cancels a task on Ctrl-C. The source must be retained.
func cancelOnInterrupt(_ task: Task<Void, any Error>) -> any DispatchSourceSignal {
    // The default action, which terminates the program, would come first.
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler { task.cancel() }
    source.resume()
    return source
}

let words = CommandLine.arguments
let task = Task {
    if words.count > 1 {
        guard let url = URL(string: words[1]) else { throw CancellationError() }
        try await ask("What is an event stream?", at: url, key: words.count > 2 ? words[2] : nil)
    } else {
        try await StubServer.with { server in
            server.route("/chat", answer)
            try await ask("What is an event stream?", at: server.url("/chat"), key: nil)
        }
    }
}
let interrupt = cancelOnInterrupt(task)
do {
    try await task.value
} catch is CancellationError {
    print("… stopped")
} catch {
    print(error)
}
interrupt.cancel()
