// SPDX-License-Identifier: MIT

import ClientKit
import Foundation
import FoundationNetworking
import Synchronization

/// URLSession of swift-corelibs-foundation.
///
/// It does not support `https`, because its trusted certificates cannot be set.
@main
struct URLSessionClient: BenchmarkClient {
    private let session: URLSession
    private let url: URL

    init(_ options: Options) throws {
        guard let url = URL(string: options.url) else { throw Failure("\(options.url) is not a URL") }
        self.url = url
        session = URLSession(configuration: Self.configuration(options))
    }

    func get() async throws {
        let (_, response) = try await session.data(from: url)
        try check(response)
    }

    func post() async throws {
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = try JSONEncoder().encode(Order.sample)
        let (data, response) = try await session.data(for: request)
        try check(response)
        _ = try JSONDecoder().decode(Customer.self, from: data)
    }

    func download(to file: OutputFile) async throws {
        file.close()
        let (temporary, response) = try await session.download(from: url)
        try check(response)
        try FileManager.default.removeItem(atPath: file.path)
        try FileManager.default.moveItem(at: temporary, to: URL(fileURLWithPath: file.path))
    }

    func upload(from path: String) async throws {
        var request = URLRequest(url: url)
        request.httpMethod = "PUT"
        let (_, response) = try await session.upload(for: request, fromFile: URL(fileURLWithPath: path))
        try check(response)
    }

    func stream(to consumer: SlowConsumer) async throws {
        try await withCheckedThrowingContinuation { continuation in
            let reader = Reader(consumer: consumer, continuation: continuation)
            let session = URLSession(configuration: session.configuration, delegate: reader, delegateQueue: nil)
            session.dataTask(with: url).resume()
            session.finishTasksAndInvalidate()
        }
    }

    func shutDown() async throws {
        session.invalidateAndCancel()
    }

    private func check(_ response: URLResponse) throws {
        guard let status = (response as? HTTPURLResponse)?.statusCode, (200..<300).contains(status) else {
            throw Failure("the status is not 2xx: \(response)")
        }
    }

    private static func configuration(_ options: Options) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = options.connections
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        return configuration
    }
}

/// A delegate that sleeps to simulate a slow reader. URLSession on Linux has no means to pause a transfer.
private final class Reader: NSObject, URLSessionDataDelegate {
    private let consumer: SlowConsumer
    private let continuation: CheckedContinuation<Void, any Error>

    init(consumer: SlowConsumer, continuation: CheckedContinuation<Void, any Error>) {
        self.consumer = consumer
        self.continuation = continuation
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let pause = consumer.pause(after: data.count)
        if pause > .zero { Thread.sleep(forTimeInterval: pause / .seconds(1)) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
    }
}
