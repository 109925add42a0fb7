// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes

extension TransportConformanceCase {
    /// The cases about the end of exchanges.
    static let endings = [
        TransportConformanceCase("leaving the scope early ends the exchange", endless) { fixture in
            let events = EventRecorder()
            let kept = try await fixture.stream(reporting: events) { _, body in
                var chunks = body.makeAsyncIterator()
                guard try await chunks.next() != nil else { throw ConformanceError("There is no first chunk.") }
                return body
            }
            try require("The end is reported", events.metrics != nil, is: true)
            try await fixture.waitForEnd()
            // A body that escapes its scope must end or throw, and must not hang.
            var chunks = kept.makeAsyncIterator()
            while let chunk = try? await chunks.next(), !chunk.isEmpty {}
        },

        TransportConformanceCase("an error of the caller is rethrown", endless) { fixture in
            try await requireFailure(
                "The exchange", where: { $0 as? ConformanceError == ConformanceError("of the caller") },
                of: { try await fixture.stream { _, _ in throw ConformanceError("of the caller") } })
            try await fixture.waitForEnd()
        },

        TransportConformanceCase("cancelling while waiting for the head throws CancellationError", .hang) { fixture in
            let task = Task { try await fixture.collect() }
            _ = try await fixture.requests(1)
            task.cancel()
            try await requireFailure("A cancelled task", where: { $0 is CancellationError }) {
                _ = try await task.value
            }
            try await fixture.waitForEnd()
        },

        TransportConformanceCase("cancelling while reading the body throws CancellationError", endless) { fixture in
            let reading = Observed(false)
            let task = Task {
                try await fixture.stream { _, body in
                    for try await _ in body { reading.update { $0 = true } }
                }
            }
            try await reading.wait { $0 }
            task.cancel()
            try await requireFailure("A cancelled task", where: { $0 is CancellationError }) { try await task.value }
            try await fixture.waitForEnd()
        },

        TransportConformanceCase("cancelling a body ends its reader, and reading does not go on", endless) { fixture in
            try await fixture.stream { _, body in
                let reading = Observed(false)
                let task = Task {
                    for try await _ in body { reading.update { $0 = true } }
                }
                try await reading.wait { $0 }
                body.cancel()
                try await requireFailure("The reader", where: { $0 is CancellationError }) { try await task.value }
                var chunks = body.makeAsyncIterator()
                try await requireFailure("A later one", where: { $0 is CancellationError }) {
                    _ = try await chunks.next()
                }
            }
            try await fixture.waitForEnd()
        },

        TransportConformanceCase("a cancelled task throws CancellationError", .status(204)) { fixture in
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                try await fixture.collect()
            }
            task.cancel()
            try await requireFailure("A cancelled task", where: { $0 is CancellationError }) { try await task.value }
        },

        TransportConformanceCase("the last event is that of the end", .generated(100_000)) { fixture in
            let events = EventRecorder()
            try await fixture.collect(reporting: events)
            let finished = events.events.indices.filter { index in
                if case .finished = events.events[index] { true } else { false }
            }
            try require("Ends", finished, is: [events.events.count - 1])
            let heads = events.events.indices.filter { index in
                if case .head(let head) = events.events[index] { head.status.code == 200 } else { false }
            }
            try require("Head events, before all progress", heads, is: [0])
            try require("Body bytes", events.metrics?.responseBodyBytes, is: 100_000)
            let progress = events.events.compactMap { event -> TransferProgress? in
                if case .downloadProgress(let progress) = event { progress } else { nil }
            }
            try require("Last progress", progress.last?.completedBytes, is: 100_000)
            try require("Total", progress.last?.totalBytes, is: 100_000)
            let completed = progress.map(\.completedBytes)
            try require("Progress grows", completed == completed.sorted(), is: true)
        },

        TransportConformanceCase("the end of a failed exchange is reported", .close) { fixture in
            let events = EventRecorder()
            _ = try? await fixture.collect(reporting: events)
            guard case .finished = events.events.last else {
                throw ConformanceError("The last event is \(String(describing: events.events.last)).")
            }
        },

        TransportConformanceCase("shutting down ends running exchanges", .hang) { fixture in
            let task = Task { try await fixture.collect() }
            _ = try await fixture.requests(1)
            await fixture.transport.shutdown()
            try await requireFailure("A running exchange", .shutDown) { _ = try await task.value }
        },

        TransportConformanceCase("shutting down closes idle connections", .status(204)) { fixture in
            try await fixture.collect()
            await fixture.transport.shutdown()
            try await fixture.waitForNoConnection()
        },

        TransportConformanceCase("new exchanges fail after a shutdown", .status(204)) { fixture in
            await fixture.transport.shutdown()
            try await requireFailure("A new exchange", .shutDown) { try await fixture.collect() }
            await fixture.transport.shutdown()
        },

        TransportConformanceCase("many exchanges run concurrently", .echo) { fixture in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        let request = fixture.request { request in
                            request.method = .post
                            request.body = .string("number \(number)")
                        }
                        let body = try await fixture.collect(request).body
                        let echo = try JSONDecoder().decode(RequestEcho.self, from: body)
                        try require("The echo", echo.body, is: "number \(number)")
                    }
                }
                try await group.waitForAll()
            }
        },
    ]

    /// Sends the first part of a body with a much larger declared length, and then nothing more.
    private static var endless: Script {
        Script([.reply(Reply(body: .generated(100_000), framing: .contentLength(declared: 1 << 40))), .hang])
    }
}
