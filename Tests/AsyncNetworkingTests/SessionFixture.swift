// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Policies for all hosts and for some of them, and which of `a.example` and `b.example` are fully verified.
let verifiedHosts: [(SecurityPolicy, [HostPattern: SecurityPolicy], verified: [String])] = {
    let verified = SecurityPolicy()
    var lenient = verified
    lenient.allowsInvalidCertificates = true
    var unnamed = verified
    unnamed.validatesDomainName = false
    var custom = verified
    custom.evaluator = { _ in .accept }
    return [
        (lenient, [:], []), (unnamed, [:], []), (custom, [:], []), (lenient, ["a.example": verified], ["a.example"]),
        (verified, ["a.example": unnamed], ["b.example"]),
    ]
}()

/// Sends a request again to another host after an error.
struct Failover: Interceptor {
    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        do {
            return try await next(request)
        } catch is TransportError {
            var request = request
            request.url = try url("http://b.example/")
            return try await next(request)
        }
    }
}

extension SessionManager {
    /// Creates a manager with a mock transport, without default header fields, so that requests contain only fields
    /// that the test sets.
    init(
        on transport: any Transport, baseURL: String? = "http://a.example/v1/",
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) {
        self.init(.on(transport, baseURL: baseURL, configure: configure))
    }

    /// Creates a manager that uses libcurl, for a stub server.
    init(for server: StubServer, configure: (inout SessionConfiguration) -> Void = { _ in }) {
        self.init(
            SessionConfiguration(baseURL: server.url("/")) { configuration in
                configuration.proxy = .none
                configure(&configuration)
            })
    }
}

extension SessionConfiguration {
    /// Creates the configuration of ``SessionManager/init(on:baseURL:configure:)``.
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

/// Parses a URL that must be valid.
func url(_ text: String) throws -> URL {
    try #require(URL(string: text))
}

/// Returns the session error that `body` throws.
func sessionError(_ body: () async throws -> Void) async throws -> SessionError {
    try #require(await #expect(throws: SessionError.self) { try await body() })
}

extension SessionError {
    var redirectFailure: RedirectFailure? {
        if case .redirect(let failure) = self { failure } else { nil }
    }

    var fileFailure: FileFailure? {
        if case .file(let failure) = self { failure } else { nil }
    }

    var isInvalidated: Bool {
        if case .invalidated = self { true } else { false }
    }
}

extension Response<Data> {
    /// The body as text.
    var text: String { String(decoding: value, as: UTF8.self) }
}

extension DownloadedFile {
    /// The path and the size, without the response, which is not comparable.
    var words: String { "\(path): \(size) bytes" }
}

extension TransferProgress {
    /// The progress without its rate, which differs between runs.
    var counts: TransferProgress {
        TransferProgress(completedBytes: completedBytes, totalBytes: totalBytes)
    }
}

extension MockTransport {
    /// The only request received so far.
    var onlyRequest: ReceivedRequest {
        get throws {
            #expect(requests.count == 1)
            return try #require(requests.first)
        }
    }
}

/// Sends a request to the path `slow` at the same time as its own, which is answered first.
struct Overlapping: Interceptor {
    let transport: MockTransport
    let gate: ScriptGate

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        var slow = request
        slow.url = try url("http://a.example/slow")
        async let other = next(slow)
        try await transport.requests(count: 1)
        let response = try await next(request)
        gate.open()
        _ = try? await other
        return response
    }
}

extension HTTPFields {
    /// `name: value` for each field, in order.
    var lines: [String] { map { "\($0.name.rawName): \($0.value)" } }
}

/// An error thrown by a test.
struct Planned: Error, Hashable {
    var number = 0
}

extension ManualClock {
    /// Advances through `count` waits, one after the other, and returns their lengths.
    func passWaits(_ count: Int) async throws -> [Duration] {
        var waits: [Duration] = []
        for _ in 0..<count {
            let wait = try #require(try await sleepers(count: 1).first)
            waits.append(wait)
            advance(by: wait)
        }
        return waits
    }
}

/// Cancels the calling task.
func cancelCurrentTask() {
    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
}

/// A temporary directory, removed with the value.
final class TemporaryDirectory: Sendable {
    let path = "/tmp/an-session-\(UInt64.random(in: 0...UInt64.max))"

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The names of the files in the directory.
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

/// A sequence that yields the same chunks in each iteration.
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

/// An ordered list of values that can be appended from any task.
actor EventList<Value: Sendable> {
    private(set) var values: [Value] = []

    func append(_ value: Value) {
        values.append(value)
    }
}
