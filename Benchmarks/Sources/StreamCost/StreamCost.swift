// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Glibc

/// Measures the parsing of server-sent events, and fails if a limit is exceeded: `StreamCost [ROUNDS]`.
///
/// - Events as language models send them (220 bytes), and short ones with three fields (60 bytes), in chunks of 64 KiB,
///   against a parser over `lines`. The figures are the best of interleaved rounds, in processor time.
/// - The peak memory of a session that receives 1,000,000 events.
@main
struct StreamCost {
    private static let delta = """
        data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1694268190,"model":"m-1",\
        "system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,\
        "finish_reason":null}]}\n\n
        """
    private static let change = "event: change\nid: 0000001234\ndata: {\"seq\":1234,\"id\":\"a\"}\n\n"

    static func main() async throws {
        try await run()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func run() async throws {
        let rounds = max(CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 5, 1)
        var isMissed = false
        for (name, event) in [("a model's answer", delta), ("short events", change)] {
            let chunk = chunk(of: event)
            var (ours, straightforward) = (Double.infinity, Double.infinity)
            for _ in 0..<rounds {
                let bytes = Double(chunk.count * 1000)
                ours = min(ours, try await secondsPerByte(bytes) { try await parse(body(chunk, 1000)) })
                straightforward = min(
                    straightforward, try await secondsPerByte(bytes / 10) { try await parseLines(of: body(chunk, 100)) }
                )
            }
            let rate = 1 / ours / 1e6
            print(
                "Events of \(name): \(Int(rate)) MB/s, \((straightforward / ours * 10).rounded() / 10) × a parser over lines"
            )
            isMissed = isMissed || rate < 300 || straightforward < 3 * ours
        }
        let growth = try await memoryGrowth()
        print("Additional memory for 1,000,000 events: \(growth / 1024) MB")
        if isMissed || growth > 16 * 1024 { exit(1) }
    }

    private static func chunk(of event: String) -> Data {
        Data(repeatElement(event.utf8, count: (64 << 10) / event.utf8.count).joined())
    }

    private static func body(_ chunk: Data, _ count: Int) -> ResponseBody {
        ResponseBody(source: RepeatedChunk(chunk, count: count))
    }

    private static func parse(_ body: ResponseBody) async throws -> Int {
        var size = 0
        for try await event in body.serverSentEvents { size += event.data.utf8.count }
        return size
    }

    /// Parses events as a program does that has only lines.
    private static func parseLines(of body: ResponseBody) async throws -> Int {
        var size = 0
        var event = ServerSentEvent(data: "")
        var data: [String] = []
        for try await line in body.lines {
            guard !line.isEmpty else {
                event.data = data.joined(separator: "\n")
                if !data.isEmpty { size += event.data.utf8.count }
                event.type = "message"
                data = []
                continue
            }
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            var value = parts.count > 1 ? parts[1] : ""
            if value.hasPrefix(" ") { value.removeFirst() }
            switch parts[0] {
            case "data": data.append(String(value))
            case "event": event.type = String(value)
            case "id": event.id = String(value)
            default: break
            }
        }
        return size
    }

    private static func secondsPerByte(_ bytes: Double, _ work: () async throws -> Int) async throws -> Double {
        let start = clock()
        guard try await work() > 0 else { throw CancellationError() }
        return Double(clock() - start) / Double(CLOCKS_PER_SEC) / bytes
    }

    /// Returns by how many KiB the peak memory grows while a session receives 1,000,000 events.
    private static func memoryGrowth() async throws -> Int {
        let chunk = chunk(of: change)
        let perChunk = (64 << 10) / change.utf8.count
        let session = SessionManager { $0.transport = StreamTransport(chunk: chunk) }
        guard let url = URL(string: "http://a.example/") else { return 0 }
        var received = 0
        var before = 0
        for try await _ in session.events(for: Request(url: url)) {
            received += 1
            // The first events allocate what the rest reuses.
            if received == perChunk * 10 { before = peakMemory() }
            if received == 1_000_000 { break }
        }
        return peakMemory() - before
    }

    private static func peakMemory() -> Int {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage.ru_maxrss
    }
}

/// A source that yields the same chunk several times.
private actor RepeatedChunk: ResponseBodySource {
    private let chunk: Data
    private var left: Int
    nonisolated var ending: ResponseEnding? { nil }

    init(_ chunk: Data, count: Int) {
        self.chunk = chunk
        left = count
    }

    func next() -> Data? {
        guard left > 0 else { return nil }
        left -= 1
        return chunk
    }
}

/// A transport whose responses are endless event streams.
private struct StreamTransport: Transport {
    let chunk: Data

    func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        let head = ResponseHead(status: .ok, headers: [.contentType: "text/event-stream"], url: request.url)
        return OpenResponse(head: head, body: ResponseBody(source: RepeatedChunk(chunk, count: .max)))
    }

    func shutdown() async {}
}
