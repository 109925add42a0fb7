// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

extension SessionManager {
    /// A manager on a mock, without the default header fields, so that tests see what they put there.
    init(
        on transport: any Transport, baseURL: String? = "http://a.example/v1/",
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) {
        self.init(.on(transport, baseURL: baseURL, configure: configure))
    }

    /// A manager on libcurl for a stub server.
    init(for server: StubServer, configure: (inout SessionConfiguration) -> Void = { _ in }) {
        self.init(baseURL: server.url("/")) { configuration in
            configuration.proxy = .none
            configure(&configuration)
        }
    }
}

extension SessionConfiguration {
    /// The configuration of ``SessionManager/init(on:baseURL:configure:)``.
    static func on(
        _ transport: any Transport, baseURL: String? = "http://a.example/v1/",
        configure: (inout SessionConfiguration) -> Void
    ) -> SessionConfiguration {
        SessionConfiguration(baseURL: baseURL.flatMap { URL(string: $0) }) { configuration in
            configuration.transport = transport
            configuration.sendsDefaultHeaders = false
            configure(&configuration)
        }
    }
}

/// A URL that a test is sure of.
func url(_ text: String) throws -> URL {
    try #require(URL(string: text))
}

/// The error of the session that `body` ends with.
func sessionError(_ body: () async throws -> Void) async throws -> SessionError {
    try #require(await #expect(throws: SessionError.self) { try await body() })
}

extension SessionError {
    var redirectProblem: RedirectProblem? {
        if case .redirect(let problem) = self { problem } else { nil }
    }

    var fileProblem: FileProblem? {
        if case .file(let problem) = self { problem } else { nil }
    }

    var transportError: TransportError? {
        if case .transport(let error) = self { error } else { nil }
    }

    var isInvalidated: Bool {
        if case .invalidated = self { true } else { false }
    }
}

extension Response<Data> {
    /// The body as text.
    var text: String { String(decoding: value, as: UTF8.self) }
}

extension TransferProgress {
    /// The same progress without its speed, which differs from run to run.
    var counts: TransferProgress {
        TransferProgress(completedBytes: completedBytes, totalBytes: totalBytes)
    }
}

extension MockTransport {
    /// The only request so far.
    var onlyRequest: ReceivedRequest {
        get throws {
            #expect(requests.count == 1)
            return try #require(requests.first)
        }
    }
}

extension HTTPFields {
    /// `name: value` for each field, in order.
    var lines: [String] { map { "\($0.name.rawName): \($0.value)" } }
}

/// An error of a test's own.
struct Planned: Error, Hashable {
    var number = 0
}

/// Calls `condition` again and again until it holds; fails the test when it never does.
func eventually(
    within limit: Duration = .seconds(60), sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while try await !condition() {
        try #require(ContinuousClock.now < end, "It has not come about in \(limit).", sourceLocation: sourceLocation)
        // Long enough to leave the processor to what is waited for.
        try await Task.sleep(for: .milliseconds(1))
    }
}

/// Cancels the task that calls.
func cancelCurrentTask() {
    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
}

/// A folder for one test, removed with the value.
final class TemporaryFolder: Sendable {
    let path = "/tmp/an-session-\(UInt64.random(in: 0...UInt64.max))"

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The names of what is in it.
    var contents: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
    }

    /// Writes a file and returns its path.
    func write(_ data: Data, to name: String) throws -> String {
        try data.write(to: URL(filePath: "\(path)/\(name)"))
        return "\(path)/\(name)"
    }

    /// Reads a file.
    func read(_ name: String) throws -> Data {
        try Data(contentsOf: URL(filePath: "\(path)/\(name)"))
    }
}

/// A sequence of given chunks, the same each time it is iterated.
struct AsyncStreamOf: AsyncSequence, Sendable {
    private let chunks: [Data]

    init(_ chunks: [Data]) {
        self.chunks = chunks
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(rest: chunks[...])
    }

    struct Iterator: AsyncIteratorProtocol {
        var rest: ArraySlice<Data>

        mutating func next() async throws -> Data? {
            rest.popFirst()
        }
    }
}

/// Values that are added from anywhere, in order.
actor EventList<Value: Sendable> {
    private(set) var values: [Value] = []

    func append(_ value: Value) {
        values.append(value)
    }
}
