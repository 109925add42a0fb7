// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

extension TransportConformanceCase {
    /// The transport and the server of a case.
    struct Fixture: Sendable {
        let transport: any Transport
        let url: URL
        let options: TransferOptions?
        /// The gate of a gated script, initially closed.
        let gate: ScriptGate
        /// Waits until the server has received a number of requests, and returns all of them.
        let requests: @Sendable (Int) async throws -> [RecordedRequest]
        /// Waits until the server's activity satisfies a condition. A mock has no server and does not wait.
        let wait: @Sendable (@escaping @Sendable (StubServer.Activity) -> Bool) async throws -> Void

        /// Waits until the server has noticed that the client abandoned the exchange.
        func waitForEnd() async throws {
            try await withDeadline("The server did not notice the end of the exchange") {
                try await wait { $0.requests.contains { $0.isAbandoned } }
            }
        }

        /// Waits until no connection is open.
        func waitForNoConnection() async throws {
            try await withDeadline("Connections were not closed") {
                try await wait { $0.openConnections == 0 }
            }
        }

        private func withDeadline(_ failure: String, _ body: @escaping @Sendable () async throws -> Void) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await body() }
                group.addTask {
                    try await Task.sleep(for: .seconds(5))
                    throw ConformanceError("\(failure) within 5 s.")
                }
                try await group.next()
                group.cancelAll()
            }
        }

        /// Returns a request for the script.
        func request(_ change: (inout Request) -> Void = { _ in }) -> Request {
            var request = Request(url: url, options: options)
            change(&request)
            return request
        }

        /// Performs a request and collects its body.
        @discardableResult
        func collect(
            _ request: Request? = nil, limit: Int = 1 << 26, reporting events: EventRecorder? = nil
        ) async throws -> (head: ResponseHead, body: Data) {
            try await transport.withResponse(
                for: request ?? self.request(), delivery: .collected(upTo: limit), reporting: events
            ) { head, body in
                (head, try await body.collect(upTo: limit))
            }
        }

        /// Performs a request and passes its body to a closure.
        @discardableResult
        func stream<Value: Sendable>(
            _ request: Request? = nil, reporting events: EventRecorder? = nil,
            body: (ResponseHead, ResponseBody) async throws -> Value
        ) async throws -> Value {
            try await transport.withResponse(
                for: request ?? self.request(), delivery: .streamed, reporting: events, body)
        }
    }
}
