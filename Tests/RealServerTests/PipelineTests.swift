// SPDX-License-Identifier: MIT

import AsyncNetworking
import HTTPTypes
import Testing

/// The pipeline with a real server.
@Suite(.servers(.nginx, .nginxTLS), .timeLimit(.minutes(5))) struct PipelineTests {
    @Test(arguments: Dialect.reusing)
    func `a request to an unavailable server is retried on the same connection`(dialect: Dialect) async throws {
        let manager = try dialect.manager {
            $0.retryPolicy = RetryPolicy(limit: 2).with { $0.backoff = Backoff(base: .zero) }
        }
        let response = try await manager.data(for: manager.request(.get, "status/503"))
        #expect(response.statusCode == 503)
        #expect(response.head.retryHistory.stop == .limit(2))
        let attempts = response.metrics.retryHistory.earlierAttempts
        #expect(attempts.map(\.outcome) == [.status(503), .status(503)])
        #expect(attempts.map { $0.metrics?.isConnectionReused } == [false, true])
        #expect(response.metrics.isConnectionReused)
    }

    @Test(arguments: Dialect.reusing)
    func `a forbidden address is not connected to`(dialect: Dialect) async throws {
        let manager = try dialect.manager { $0.connection.addresses = .publicOnly() }
        let error = try await sessionError { _ = try await manager.get("small.json") }
        guard case .cannotConnect(.addressForbidden) = error.reason else { throw error }
        let context = try #require(error.context)
        #expect(["127.0.0.1", "::1"].contains(context.address?.host))
        let allowed = try dialect.manager {
            $0.connection.addresses = .publicOnly(except: ["127.0.0.0/8", "::1"])
        }
        #expect(try await allowed.get("small.json").statusCode == 200)
    }

    @Test(arguments: Dialect.reusing)
    func `a large body passes through interceptors as a stream`(dialect: Dialect) async throws {
        struct Counting: Interceptor {
            let sizes: AsyncStream<Int>.Continuation

            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                var response = try await next(request)
                response.body = response.body.transforming { chunk in
                    sizes.yield(chunk.count)
                    return chunk
                }
                return response
            }
        }
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        let manager = try dialect.manager { $0.attemptInterceptors = [Counting(sizes: continuation)] }
        var received = 0
        try await manager.withResponse(for: manager.request(.get, "64m.bin")) { _, body in
            for try await chunk in body { received += chunk.count }
        }
        continuation.finish()
        let sizes = await stream.reduce(into: []) { $0.append($1) }
        #expect(received == 64 << 20)
        #expect(sizes.reduce(0, +) == 64 << 20)
        #expect(sizes.allSatisfy { $0 <= manager.configuration.transfer.streamBufferSize })
    }
}
