// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct WritersTests {
    @Test(arguments: [nil, 12] as [Int64?])
    func `the bytes that a closure writes are sent in order`(length: Int64?) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let body = RequestBody.writer(length: length) { writer in
                try await writer.write("one ")
                try await writer.write(Data())
                try await writer.write([UInt8]("two ".utf8))
                try await writer.write("äö")
            }
            _ = try await CurlTransport().collect(server.request(method: .post, body: body))
            let request = try await server.requests(count: 1)[0]
            #expect(request.text == "one two äö")
            #expect(request.headers["Content-Length"] == length.map(String.init))
            #expect(request.headers["Transfer-Encoding"] == (length == nil ? "chunked" : nil))
        }
    }

    @Test(arguments: [5, 3])
    func `a closure that does not write its declared length fails the request`(length: Int64) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let body = RequestBody.writer(length: length) { writer in try await writer.write("four") }
            let error = try await CurlTransport().failure(server.request(method: .post, body: body))
            let expected: TransportError.RequestBodyFailure =
                length == 5 ? .tooShort(declared: 5, produced: 4) : .tooLong(declared: 3)
            #expect(error.reason == .requestBody(expected))
        }
    }

    @Test func `a closure that declares no bytes is called, and fails the request if it writes some`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.fallback { _ in Script([.wait(gate), .reply(Reply(status: 200))]) }
            let (isCalled, mayWrite) = (Flag(), Lock(false))
            let body = RequestBody.writer(length: 0) { writer in
                isCalled.raise()
                if mayWrite.withLock({ $0 }) { try await writer.write("four") }
            }
            let transport = try CurlTransport()
            async let response = transport.collect(server.request(method: .post, body: body))
            try await eventually { isCalled.isRaised }
            gate.open()
            #expect(try await response.head.status == .ok)
            #expect(try await server.requests(count: 1)[0].headers["Content-Length"] == "0")
            mayWrite.withLock { $0 = true }
            server.fallback { _ in .hang }
            let error = try await transport.failure(server.request(method: .post, body: body))
            #expect(error.reason == .requestBody(.tooLong(declared: 0)))
        }
    }

    @Test func `a write waits while the server does not read`() async throws {
        var options = StubServer.Options()
        options.receiveBufferSize = 4096
        try await StubServer.with(options) { server in
            let gate = try ScriptGate()
            server.enqueue(Script([.wait(gate), .readBody(), .reply(Reply(status: 201))], readsBodyFirst: false))
            let size = 64 << 20
            let written = Lock(0)
            let body = RequestBody.writer { writer in
                while written.withLock({ $0 }) < size {
                    try await writer.write(Data(count: 1 << 16))
                    written.withLock { $0 += 1 << 16 }
                }
            }
            async let response = CurlTransport().collect(server.request(method: .post, body: body))
            try await server.requests(count: 1)
            for _ in 0..<1000 { await Task.yield() }
            #expect(written.withLock { $0 } < size / 2)
            gate.open()
            let status = try await response.head.status.code
            #expect(status == 201)
            #expect(try await server.requests(count: 1)[0].bodyLength == Int64(size))
        }
    }

    @Test(arguments: [true, false])
    func `a refusal ends the closure, even if it ignores errors`(ignoresErrors: Bool) async throws {
        try await StubServer.with { server in
            let refusal = Reply(status: 413, headers: ["Connection": "close"])
            server.enqueue(Script([.readBody(upTo: 1), .reply(refusal), .end(.close)], readsBodyFirst: false))
            let isOver = Flag()
            let body = RequestBody.writer { writer in
                defer { isOver.raise() }
                for _ in 0..<10_000 {
                    do {
                        try await writer.write(Data(count: 1 << 16))
                    } catch {
                        #expect(error is CancellationError)
                        if !ignoresErrors { throw error }
                    }
                }
            }
            let (head, _) = try await CurlTransport().collect(server.request(method: .post, body: body))
            #expect(head.status.code == 413)
            #expect(isOver.isRaised)
        }
    }

    @Test func `cancelling the request cancels the closure and waits for it`() async throws {
        try await StubServer.with { server in
            server.enqueue(Script([.hang], readsBodyFirst: false))
            let isWaiting = Feed()
            let isOver = Flag()
            let body = RequestBody.writer { writer in
                defer { isOver.raise() }
                try await writer.write("begin")
                isWaiting.yield("now")
                try await Task.sleep(for: .seconds(3600))
            }
            let transport = try CurlTransport()
            let task = Task { try await transport.collect(server.request(method: .post, body: body)) }
            for try await _ in isWaiting { break }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(isOver.isRaised)
        }
    }

    @Test func `an error of the closure fails the request, which is not complete for the server`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let body = RequestBody.writer { writer in
                try await writer.write("some")
                throw Planned(number: 7)
            }
            let transport = try CurlTransport()
            let error = try await transport.failure(server.request(method: .post, body: body))
            guard case .requestBody(.source(let planned as Planned)) = error.reason else { throw error }
            #expect(planned == Planned(number: 7))
            #expect(try await transport.text(server.request()) == "ok")
            #expect(server.activity.requests.allSatisfy { $0.method == "GET" || !$0.isComplete })
        }
    }

    @Test func `a writer that outlives the closure has no effect`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let keeper = Keeper()
            let body = RequestBody.writer { writer in
                try await writer.write("all")
                await keeper.keep(writer)
            }
            _ = try await CurlTransport().collect(server.request(method: .post, body: body))
            await #expect(throws: CancellationError.self) { try await keeper.write("more") }
            #expect(try await server.requests(count: 1)[0].text == "all")
        }
    }

    private actor Keeper {
        private var writer: RequestBodyWriter?

        func keep(_ writer: sending RequestBodyWriter) { self.writer = writer }

        func write(_ text: String) async throws { try await writer?.write(text) }
    }

    @Test func `over HTTP 2, the end of the response ends a closure that is waiting`() async throws {
        let authority = try TestCertificateAuthority()
        var tls = StubServer.TLS(try authority.issue())
        tls.protocols = ["h2"]
        try await StubServer.with(.init(tls: tls)) { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                var script = Script.http2([.head(1), .data(1, "done", endsStream: true)])
                script.actions.insert(.wait(gate), at: 1)
                return script
            }
            let isOver = Flag()
            let body = RequestBody.writer { writer in
                defer { isOver.raise() }
                try await writer.write("ping")
                gate.open()
                try await Task.sleep(for: .seconds(3600))
            }
            let options = TransferOptions.with {
                $0.httpVersion = .http2
                $0.tls.trustRoots = .pem(authority.pemData)
            }
            let text = try await CurlTransport().text(server.request(method: .post, body: body, options: options))
            #expect(text == "done")
            #expect(isOver.isRaised)
        }
    }
}
