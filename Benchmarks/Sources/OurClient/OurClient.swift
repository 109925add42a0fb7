// SPDX-License-Identifier: MIT

import AsyncNetworking
import ClientKit
import FoundationEssentials

/// AsyncNetworking.
@main
struct OurClient: BenchmarkClient {
    private let manager: SessionManager
    private let url: URL
    private let segments: Int
    let taskExecutor: (any TaskExecutor)?

    init(_ options: Options) throws {
        guard let url = URL(string: options.url) else { throw Failure("\(options.url) is not a URL") }
        self.url = url
        segments = options.segments
        var policy = SecurityPolicy()
        if options.pinsAuthority, let file = options.certificateAuthority {
            policy = .pinning(certificates: try SecurityPolicy.certificates(in: .file(file)), mode: .publicKey)
        }
        manager = SessionManager {
            $0.connectionLimits.maximumConnectionsPerHost = options.connections
            if let file = options.certificateAuthority { $0.tls.trustRoots = .file(file) }
            $0.tls.policy = policy
            $0.tls.resumesSessions = options.workload != "connect"
            $0.httpVersion = options.requiresHTTP3 ? .http3Only : options.prefersHTTP2 ? .http2 : .http1
        }
        taskExecutor = options.usesEventLoopExecutor ? manager.eventLoopExecutor : nil
    }

    func get() async throws {
        try check(try await manager.data(for: Request(url: url)).head)
    }

    func post() async throws {
        _ = try await manager.post(url, body: .json(Order.sample), as: .decodable(Customer.self)).value
    }

    func download(to file: OutputFile) async throws {
        file.close()
        let options = DownloadOptions().with { $0.segments = .count(segments) }
        _ = try await manager.download(Request(url: url), to: .file(file.path), options: options).value
    }

    func upload(from path: String) async throws {
        let task = manager.upload(url.absoluteString, body: .file(path), method: .put)
        try check(try await task.value.head)
    }

    func stream(to consumer: SlowConsumer) async throws {
        try await manager.withResponse(for: Request(url: url)) { _, body in
            for try await chunk in body {
                let pause = consumer.pause(after: chunk.count)
                if pause > .zero { try await Task.sleep(for: pause) }
            }
        }
    }

    func shutDown() async throws {
        await manager.shutdown()
    }

    private func check(_ head: ResponseHead) throws {
        guard (200..<300).contains(head.status.code) else { throw Failure("the status is \(head.status)") }
    }
}
