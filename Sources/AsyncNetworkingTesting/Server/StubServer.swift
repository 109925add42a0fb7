// SPDX-License-Identifier: MIT

import ANSystem
public import FoundationEssentials

/// A scripted HTTP/1.1 server on this machine that records what it receives and misbehaves exactly as told.
///
/// ```swift
/// try await StubServer.with { server in
///     server.route("/user", .status(503), .json(#"{"name": "Ada"}"#))
///     let user = try await api.get(server.url("/user"), as: .decodable(User.self)).value
///     let requests = try await server.requests(count: 2)
/// }
/// ```
///
/// It listens from the moment it is made until ``stop()``, on a free port unless told otherwise; when the scope of
/// ``with(_:_:)`` ends, its threads and descriptors are gone. Each connection has a thread with blocking calls; delays and
/// paces take real time.
public final class StubServer: Sendable {
    /// Where the server listens.
    public let endpoint: Endpoint
    /// How the server was made.
    public let options: Options

    private let log = Observed(Activity())
    private let router = StubRouter()
    private let listener: StubListener
    private let base: URL

    /// Starts a server.
    ///
    /// - Throws: `SystemError` when the address cannot be listened on, ``OpenSSLError`` when the TLS options are unusable.
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

    /// Starts a server, runs `body` with it, and stops it however `body` ends.
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

    /// Ends all connections, and returns when the threads and descriptors of the server are gone.
    ///
    /// Stopping twice is no error. A cancelled task stops it all the same.
    public func stop() async {
        await listener.stop()
    }

    // MARK: Scripts

    /// Answers requests for `path`, without regard to its query: by each script in turn, the last one from then on.
    public func route(_ path: String, method: String? = nil, _ scripts: Script...) {
        router.add(.scripts(scripts), method: method, path: path)
    }

    /// Answers requests for `path` by what `handler` makes of them once they have arrived with their body.
    ///
    /// It runs on the connection's thread; an error that it throws becomes a response of status 500.
    public func route(
        _ path: String, method: String? = nil, _ handler: @escaping @Sendable (RecordedRequest) throws -> Script
    ) {
        router.add(.handler(handler), method: method, path: path)
    }

    /// Answers requests that no route is for; 404 unless set.
    public func fallback(_ handler: @escaping @Sendable (RecordedRequest) throws -> Script) {
        router.setFallback(.handler(handler))
    }

    /// Answers the next requests, whatever their path, by these scripts, one each.
    public func enqueue(_ scripts: Script...) {
        router.enqueue(scripts)
    }

    /// Meets the next connections in these ways, one each; later ones are served.
    public func greet(_ greetings: Greeting...) {
        router.enqueue(greetings)
    }

    /// Ends all connections that are open now; the server goes on listening.
    public func disconnectAll() {
        listener.disconnectAll()
    }

    // MARK: Observation

    /// The URL of a path, with its query.
    ///
    /// The host is the address that the server listens on, `localhost` for a Unix-domain socket; another name for the
    /// same address can be given, for tests of names.
    public func url(_ path: String = "/", host: String? = nil) -> URL {
        guard let url = URL(string: base.absoluteString + path) else { return base }
        guard let host, var parts = URLComponents(url: url, resolvingAgainstBaseURL: false) else { return url }
        parts.host = host
        return parts.url ?? url
    }

    /// What was seen so far.
    public var activity: Activity { log.value }

    /// Waits until `condition` holds for what was seen, and returns that.
    ///
    /// `condition` runs at each change, under a lock: it must be quick and must not use the server.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    @discardableResult
    public func activity(where condition: @escaping @Sendable (Activity) -> Bool) async throws -> Activity {
        try await log.wait(until: condition)
        return log.value
    }

    /// Waits until so many requests have arrived, and returns all that have.
    ///
    /// A request arrives with the end of its body, or with its head if its script reads the body later or never.
    @discardableResult
    public func requests(count: Int) async throws -> [RecordedRequest] {
        try await activity { $0.requests.count >= count }.requests
    }

    /// Waits until so many connections are open.
    public func connections(open count: Int) async throws {
        try await activity { $0.openConnections == count }
    }

    /// What a server has seen.
    public struct Activity: Sendable {
        /// The requests in the order in which they arrived.
        public internal(set) var requests: [RecordedRequest] = []
        /// How many connections were accepted.
        public internal(set) var connectionsAccepted = 0
        /// How many connections are open.
        public internal(set) var openConnections = 0
        /// Why TLS handshakes failed, in OpenSSL's words.
        public internal(set) var failedHandshakes: [String] = []
    }

    /// What a connection meets when it is accepted.
    public enum Greeting: Hashable, Sendable {
        /// It is served.
        case serve
        /// It is ended before a byte is read.
        case end(Script.Ending)
        /// Nothing is read or written until the client closes; with TLS the handshake hangs.
        case hang
    }
}
