// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Uploads to the tus server resumable-upload.
@Suite(.servers(.tus, .tusCut), .timeLimit(.minutes(5))) struct ResumableUploadsTests {
    private let bytes = StubServer.generatedBytes(8_000_000)

    private static func manager(_ server: RealServer) throws -> SessionManager {
        try SessionManager(for: server) {
            $0.retryPolicy = RetryPolicy(limit: 20).with { ($0.backoff, $0.budget) = (Backoff(base: .zero), nil) }
        }
    }

    /// The path of the upload of a task.
    private static func path(of events: BroadcastStream<TaskEvent>) async throws -> String {
        for await event in events {
            if case .exchange(_, .started(let request)) = event, request.method == .patch { return request.url.path() }
        }
        throw CancellationError()
    }

    @Test func `an upload through a proxy that cuts each connection arrives whole`() async throws {
        let requests = RequestCount()
        let manager = try SessionManager(for: .tusCut) {
            // The server may still be busy with what it received before a cut.
            let backoff = Backoff(base: .milliseconds(5))
            $0.retryPolicy = RetryPolicy(limit: 20).with { ($0.backoff, $0.budget) = (backoff, nil) }
            $0.attemptInterceptors = [requests]
        }
        let task = manager.upload("files", body: .bytes(bytes), options: .resumable)
        _ = try await task.value
        #expect(await requests.patches >= 200)
        let path = try await Self.path(of: task.events)
        #expect(try await Self.manager(.tus).get(path).value == bytes)
    }

    @Test(arguments: [UploadProtocol.tus, nil])
    func `parts with checksums are verified by the server`(uploadProtocol: UploadProtocol?) async throws {
        let options = UploadOptions.resumable.with {
            ($0.uploadProtocol, $0.verifiesParts, $0.partSize) = (uploadProtocol, true, 1_000_000)
        }
        let manager = try Self.manager(.tus)
        let task = manager.upload("files", body: .bytes(bytes), options: options)
        #expect(try await task.value.statusCode == 204)
        var sums: [String] = []
        for await event in task.events {
            if case .exchange(_, .started(let request)) = event,
                let sum = request.headers.first(where: { $0.name.canonicalName == "upload-checksum" })
            {
                sums.append(sum.value)
            }
        }
        #expect(sums.count == 8 && sums.allSatisfy { $0.hasPrefix("sha256 ") })
        #expect(try await manager.get(Self.path(of: task.events)).value == bytes)
    }

    @Test func `a wrong checksum is refused, and a cancelled upload is gone`() async throws {
        let manager = try SessionManager(for: .tus) {
            $0.attemptInterceptors = [WrongChecksum()]
            $0.retryPolicy = RetryPolicy(limit: 2).with { $0.backoff = Backoff(base: .zero) }
        }
        let task = manager.upload("files", body: .bytes(bytes), options: .resumable.with { $0.verifiesParts = true })
        let error = await #expect(throws: SessionError.self) { try await task.value }
        #expect(error?.statusCode == 460)
        let held = try Self.manager(.tus).upload(
            "files", body: .stream(Slow(), length: 1_000, isReplayable: true), options: .resumable)
        let path = try await Self.path(of: held.events)
        held.cancel()
        await #expect(throws: CancellationError.self) { try await held.value }
        let gone = await #expect(throws: SessionError.self) { try await Self.manager(.tus).head(path) }
        #expect(gone?.statusCode == 404 || gone?.statusCode == 410 || gone?.statusCode == 412)
    }

    private struct WrongChecksum: Interceptor {
        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            var request = request
            if request.method == .patch {
                request.headers[HTTPField.Name(constant: "Upload-Checksum")] = "sha1 AAAAAAAAAAAAAAAAAAAAAAAAAAA="
            }
            return try await next(request)
        }
    }

    /// A body that never ends.
    private struct Slow: AsyncSequence, AsyncIteratorProtocol, Sendable {
        func makeAsyncIterator() -> Slow { self }
        mutating func next() async throws -> Data? {
            try await Task.sleep(for: .seconds(3_600))
            return nil
        }
    }
}

/// Counts the requests that send a part.
private actor RequestCount: Interceptor {
    private(set) var patches = 0

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        if request.method == .patch { patches += 1 }
        return try await next(request)
    }
}
