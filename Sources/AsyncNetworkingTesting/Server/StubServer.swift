// SPDX-License-Identifier: MIT

import ANSystem
public import FoundationEssentials

/// A scripted local HTTP/1.1 server that records requests and can misbehave in precise ways.
///
/// ```swift
/// try await StubServer.with { server in
///     server.route("/user", .status(503), .json(#"{"name": "Ada"}"#))
///     let user = try await api.get(server.url("/user"), as: .decodable(User.self)).value
///     let requests = try await server.requests(count: 2)
/// }
/// ```
///
/// The server listens from its creation until ``stop()``, by default on a free port of 127.0.0.1. When the scope of
/// ``with(_:_:)`` ends, its threads and descriptors have been released. Each connection uses a thread with blocking
/// calls; delays and paces take real time.
public final class StubServer: Sendable {
    /// The address that the server listens on.
    public let endpoint: Endpoint
    /// The options that the server was created with.
    public let options: Options

    private let log = Observed(Activity())
    private let router = StubRouter()
    private let listener: StubListener
    private let base: URL

    /// Starts a server.
    ///
    /// - Throws: `SystemError` if it cannot listen on the address, ``OpenSSLError`` if the TLS options are invalid.
    public init(_ options: Options = Options()) throws {
        let socket = try ListeningSocket(options)
        let endpoint = socket.endpoint
        guard let base = URL(string: endpoint.baseURL(scheme: options.tls == nil ? "http" : "https")) else {
            throw SystemError(call: "URL", code: 0)
        }
        self.options = options
        self.endpoint = endpoint
        self.base = base
        let tls = try options.tls.map(TLSContext.init)
        listener = try StubListener(
            socket, StubConnection.Environment(options: options, log: log, router: router, tls: tls))
    }

    deinit {
        listener.requestStop()
    }

    /// Starts a server, calls `body` with it, and stops the server, even if `body` throws.
    @discardableResult
    public static func with<Result>(
        _ options: Options = Options(), _ body: (StubServer) async throws -> Result
    ) async throws -> Result {
        let server = try StubServer(options)
        do {
            let result = try await body(server)
            await server.stop()
            return result
        } catch {
            await server.stop()
            throw error
        }
    }

    /// Ends all connections, and returns after all threads and descriptors of the server have been released.
    ///
    /// Stopping a server again has no effect. The server is stopped even if the task is cancelled.
    public func stop() async {
        await listener.stop()
    }

    // MARK: Scripts

    /// Responds to requests for a path with the given scripts in turn, and then repeats the last one.
    ///
    /// - Parameters:
    ///   - path: The path, without a query.
    ///   - method: The method; `nil`, the default, for all methods without a route of their own.
    ///   - scripts: The scripts; without any, the response has status 404.
    public func route(_ path: String, method: String? = nil, _ scripts: Script...) {
        router.add(.scripts(scripts), method: method, path: path)
    }

    /// Responds to requests for a path with the script that a function returns after the complete request has arrived.
    ///
    /// - Parameters:
    ///   - path: The path, without a query.
    ///   - method: The method; `nil`, the default, for all methods without a route of their own.
    ///   - handler: Returns the script for a request. It is called on the connection's thread; if it throws an error,
    ///     the response has status 500.
    public func route(
        _ path: String, method: String? = nil, _ handler: @escaping @Sendable (RecordedRequest) throws -> Script
    ) {
        router.add(.handler(handler), method: method, path: path)
    }

    /// Responds to requests without a route with the script that a function returns; by default the response has status
    /// 404.
    public func fallback(_ handler: @escaping @Sendable (RecordedRequest) throws -> Script) {
        router.setFallback(.handler(handler))
    }

    /// Responds to the next requests with the given scripts, one for each request, regardless of its path.
    public func enqueue(_ scripts: Script...) {
        router.enqueue(scripts)
    }

    /// Handles the next connections with the given greetings, one for each connection; later connections are served.
    public func greet(_ greetings: Greeting...) {
        router.enqueue(greetings)
    }

    /// Ends all open connections; the server continues to listen.
    public func disconnectAll() {
        listener.disconnectAll()
    }

    // MARK: Observation

    /// Returns the URL of a path on this server.
    ///
    /// - Parameters:
    ///   - path: The path with its query, beginning with a slash; `/` by default.
    ///   - host: A host name for the address, for tests of names; `nil`, the default, for the address that the server
    ///     listens on, or `localhost` for a Unix-domain socket.
    public func url(_ path: String = "/", host: String? = nil) -> URL {
        guard let url = URL(string: base.absoluteString + path) else { return base }
        guard let host, var parts = URLComponents(url: url, resolvingAgainstBaseURL: false) else { return url }
        parts.host = host
        return parts.url ?? url
    }

    /// The activity of the server so far.
    public var activity: Activity { log.value }

    /// Waits until the activity satisfies a condition, and returns the activity.
    ///
    /// The condition is evaluated on each change while a lock is held: it must be fast and must not use the server.
    ///
    /// - Parameters:
    ///   - limit: The maximum wait; 30 s by default.
    ///   - condition: Whether the activity is sufficient.
    /// - Throws: ``ActivityTimeout`` after `limit`, `CancellationError` if the task is cancelled.
    @discardableResult
    public func activity(
        within limit: Duration = .seconds(30), where condition: @escaping @Sendable (Activity) -> Bool
    ) async throws -> Activity {
        let isSatisfied = try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask { [log] in
                try await log.wait(until: condition)
                return true
            }
            group.addTask {
                try await Task.sleep(for: limit)
                return false
            }
            defer { group.cancelAll() }
            return try await group.next() == true
        }
        guard isSatisfied else { throw ActivityTimeout(limit: limit, activity: log.value) }
        return log.value
    }

    /// Waits until at least `count` requests have arrived, and returns all of them.
    ///
    /// A request has arrived after the end of its body, or after its head if its script reads the body later or not at
    /// all.
    ///
    /// - Parameters:
    ///   - count: The number of requests.
    ///   - limit: The maximum wait; 30 s by default.
    /// - Throws: ``ActivityTimeout`` after `limit`, `CancellationError` if the task is cancelled.
    @discardableResult
    public func requests(count: Int, within limit: Duration = .seconds(30)) async throws -> [RecordedRequest] {
        try await activity(within: limit) { $0.requests.count >= count }.requests
    }

    /// Waits until exactly `count` connections are open.
    ///
    /// - Parameters:
    ///   - count: The number of connections.
    ///   - limit: The maximum wait; 30 s by default.
    /// - Throws: ``ActivityTimeout`` after `limit`, `CancellationError` if the task is cancelled.
    public func connections(open count: Int, within limit: Duration = .seconds(30)) async throws {
        try await activity(within: limit) { $0.openConnections == count }
    }

    /// The activity of a server.
    public struct Activity: Sendable {
        /// The requests in the order in which they arrived.
        public internal(set) var requests: [RecordedRequest] = []
        /// The number of connections accepted so far.
        public internal(set) var connectionsAccepted = 0
        /// The number of open connections.
        public internal(set) var openConnections = 0
        /// The reasons for failed TLS handshakes, in OpenSSL's words.
        public internal(set) var failedHandshakes: [String] = []
    }

    /// The treatment of a connection after it was accepted.
    public enum Greeting: Hashable, Sendable {
        /// The connection is served.
        case serve
        /// The connection is ended before a byte is read.
        case end(Script.Ending)
        /// Nothing is read or written until the client closes the connection; with TLS the handshake hangs.
        case hang
    }
}
