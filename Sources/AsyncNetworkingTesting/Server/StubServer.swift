// SPDX-License-Identifier: MIT

package import ANHTTP
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
/// calls; delays and paces take real time. All members may be used from any thread or task at any time.
public final class StubServer: Sendable {
    /// The address that the server listens on, with the actual port if ``Options/port`` is 0.
    public let endpoint: Endpoint
    /// The options that the server was created with, unchanged: a ``Options/port`` of 0 remains 0.
    public let options: Options

    private let log = Observed(Activity())
    private let router = StubRouter()
    private let listener: StubListener
    private let base: URL

    /// Starts a server, which listens until ``stop()`` is called or it is released.
    ///
    /// - Parameter options: The options; by default plain HTTP on a free port of 127.0.0.1.
    /// - Throws: `SystemError` if the server cannot listen on the address, for example because the port is in use or
    ///   the path of a socket too long, or cannot start a thread; ``OpenSSLError`` if the TLS options are invalid.
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

    /// Starts a server, calls a function with it, and stops the server, even if the function throws.
    ///
    /// - Parameters:
    ///   - options: The options; by default plain HTTP on a free port of 127.0.0.1.
    ///   - body: Receives the server, which is stopped when it returns or throws.
    /// - Returns: The value that `body` returns, after all threads and descriptors of the server have been released.
    /// - Throws: `SystemError` if the server cannot listen on the address or start a thread; ``OpenSSLError`` if the
    ///   TLS options are invalid; the errors of `body`, unchanged.
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

    /// Stops listening, ends all connections and their scripts, and waits until all threads and descriptors of the
    /// server have been released.
    ///
    /// Waits for the functions of routes that are running. Open connections end without `close_notify`, and their
    /// requests do not count as abandoned. ``activity`` remains available. Stopping a server again has no effect. The
    /// server is stopped even if the calling task is cancelled.
    public func stop() async {
        await listener.stop()
    }

    // MARK: Scripts

    /// Responds to requests for a path with the given scripts in turn, and then repeats the last one.
    ///
    /// Requests of all connections take the scripts in the order in which their heads arrive. Replaces an earlier route
    /// with the same path and method. Scripts of ``enqueue(_:)`` take precedence.
    ///
    /// - Parameters:
    ///   - path: The complete path, percent-encoded and without a query, as in ``RecordedRequest/path``.
    ///   - method: The method, which is case-sensitive; `nil`, the default, for all methods without a route of their
    ///     own.
    ///   - scripts: The scripts; without any, the response has status 404.
    public func route(_ path: String, method: String? = nil, _ scripts: Script...) {
        route(path, method: method, scripts: scripts)
    }

    /// Responds to requests for a path with the given scripts in turn, and then repeats the last one.
    package func route(_ path: String, method: String? = nil, scripts: [Script]) {
        router.add(.scripts(scripts), method: method, path: path)
    }

    /// Responds to requests for a path with the script that a function returns after the complete request has arrived.
    ///
    /// ``Script/readsBodyFirst`` and ``Script/expectation`` of the script have no effect: the body was read before,
    /// after `100 Continue` if the client expects it. Replaces an earlier route with the same path and method. Scripts
    /// of ``enqueue(_:)`` take precedence.
    ///
    /// - Parameters:
    ///   - path: The complete path, percent-encoded and without a query, as in ``RecordedRequest/path``.
    ///   - method: The method, which is case-sensitive; `nil`, the default, for all methods without a route of their
    ///     own.
    ///   - handler: Returns the script for a request. It is called on the connection's thread, concurrently for several
    ///     connections; if it throws an error, the response has status 500 and a description of the error.
    public func route(
        _ path: String, method: String? = nil, _ handler: @escaping @Sendable (RecordedRequest) throws -> Script
    ) {
        router.add(.handler(handler), method: method, path: path)
    }

    /// Responds to requests that have no route for their path and method with the script that a function returns.
    ///
    /// Without a fallback, such requests are answered with status 404. A second call replaces the function. Scripts of
    /// ``enqueue(_:)`` take precedence.
    ///
    /// - Parameter handler: Returns the script for a request, whose body has been read, so that
    ///   ``Script/readsBodyFirst`` and ``Script/expectation`` have no effect. It is called on the connection's thread,
    ///   concurrently for several connections. If it throws an error, the response has status 500 and a description of
    ///   the error.
    public func fallback(_ handler: @escaping @Sendable (RecordedRequest) throws -> Script) {
        router.setFallback(.handler(handler))
    }

    /// Responds to the next requests with the given scripts, one for each request, regardless of its path and of
    /// routes.
    ///
    /// Requests of all connections take the scripts in the order in which their heads arrive. Scripts are appended to
    /// those that no request has taken yet; without any, the call has no effect.
    public func enqueue(_ scripts: Script...) {
        router.enqueue(scripts)
    }

    /// Handles the next connections with the given greetings, one for each connection; all others are served.
    ///
    /// Connections that are opened at the same time take greetings in any order. Greetings are appended to those that
    /// no connection has taken yet; ``Greeting/serve`` skips a connection.
    public func greet(_ greetings: Greeting...) {
        router.enqueue(greetings)
    }

    /// Shuts down all open connections without `close_notify`; the server continues to listen.
    ///
    /// Returns immediately; ``connections(open:within:)`` waits until they are closed. The requests on them do not
    /// count as abandoned. Has no effect without open connections.
    public func disconnectAll() {
        listener.disconnectAll()
    }

    // MARK: Observation

    /// Returns the URL of a path on this server, with the scheme `https` if it uses TLS, otherwise `http`.
    ///
    /// - Parameters:
    ///   - path: The percent-encoded path with its query, beginning with a slash; `/` by default. Characters that are
    ///     not valid in a URL are percent-encoded. If it cannot be parsed nevertheless, the URL has no path.
    ///   - host: A host name for the address, for tests of names; `nil`, the default, for the address that the server
    ///     listens on, or `localhost` for a Unix-domain socket.
    public func url(_ path: String = "/", host: String? = nil) -> URL {
        guard let url = URL(string: base.absoluteString + path) else { return base }
        guard let host, var parts = URLComponents(url: url, resolvingAgainstBaseURL: false) else { return url }
        parts.host = host
        return parts.url ?? url
    }

    /// A snapshot of the requests and connections of the server so far, also after ``stop()``. It does not change; read
    /// the property again for a newer one.
    public var activity: Activity { log.value }

    /// Waits until the activity satisfies a condition, and returns the activity at that time or a later one.
    ///
    /// - Parameters:
    ///   - limit: The maximum wait; 30 s by default. With zero or a negative duration, the call may throw even if the
    ///     condition is satisfied.
    ///   - condition: Whether the activity is sufficient. It is evaluated when the wait begins, and after each change
    ///     on the thread of the server that makes it. A lock is held meanwhile: it must be fast and must not use the
    ///     server.
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
                try await Task.sleep(for: limit.bounded)
                return false
            }
            defer { group.cancelAll() }
            return try await group.next() == true
        }
        guard isSatisfied else { throw ActivityTimeout(limit: limit, activity: log.value) }
        return log.value
    }

    /// Waits until at least `count` requests have arrived, and returns all of them in the order in which they arrived.
    ///
    /// A request has arrived after the end of its body, or after its head if its script reads the body later or not at
    /// all. A request that its client abandons between its head and that point counts, too; see
    /// ``RecordedRequest/isAbandoned``. A request that is malformed up to that point is answered with status 400, and
    /// does not count; nor does one whose connection the server shuts down before that point, as by
    /// ``disconnectAll()``.
    ///
    /// - Parameters:
    ///   - count: The number of requests; with 0 or a negative number, does not wait.
    ///   - limit: The maximum wait; 30 s by default. With zero or a negative duration, the call may throw even if the
    ///     requests have arrived.
    /// - Throws: ``ActivityTimeout`` after `limit`, `CancellationError` if the task is cancelled.
    @discardableResult
    public func requests(count: Int, within limit: Duration = .seconds(30)) async throws -> [RecordedRequest] {
        try await activity(within: limit) { $0.requests.count >= count }.requests
    }

    /// Waits until exactly `count` connections are open, in the sense of ``Activity/openConnections``.
    ///
    /// - Parameters:
    ///   - count: The number of connections; 0 to wait until all are closed. A negative number is never reached.
    ///   - limit: The maximum wait; 30 s by default. With zero or a negative duration, the call may throw even if the
    ///     number is reached.
    /// - Throws: ``ActivityTimeout`` after `limit`, `CancellationError` if the task is cancelled.
    public func connections(open count: Int, within limit: Duration = .seconds(30)) async throws {
        try await activity(within: limit) { $0.openConnections == count }
    }

    /// A snapshot of the requests and connections of a ``StubServer``.
    public struct Activity: Sendable {
        /// The requests in the order in which they arrived, including those that clients abandoned after the head.
        ///
        /// A request is in the list after the end of its body, or after its head if its script reads the body later or
        /// not at all. Requests that are malformed up to that point, and are answered with status 400, are not
        /// included, nor those whose connection the server shut down before that point, as by
        /// ``StubServer/disconnectAll()``.
        public internal(set) var requests: [RecordedRequest] = []
        /// The number of connections accepted so far, including those that a ``Greeting`` ended or whose TLS handshake
        /// failed.
        public internal(set) var connectionsAccepted = 0
        /// The number of connections that were accepted and that the server has not closed yet, even if the client has.
        public internal(set) var openConnections = 0
        /// The reasons for failed TLS handshakes in the order of their failures, each a description of an
        /// ``OpenSSLError``; empty without failures.
        ///
        /// A handshake also fails if the client or the server ends the connection meanwhile.
        public internal(set) var failedHandshakes: [String] = []
        /// The control frames that WebSocket clients sent, as far as they were read by the scripts or at the end of the
        /// connection.
        package internal(set) var webSocketControlFrames: [WebSocketFrame] = []
        /// The closures that WebSocket clients sent.
        package var webSocketClosures: [WebSocketClosure] {
            webSocketControlFrames.filter { $0.opcode == .close }.compactMap {
                try? WebSocketClosure(payload: $0.payload)
            }
        }
    }

    /// The treatment of a connection after it was accepted and before its TLS handshake; set with
    /// ``StubServer/greet(_:)``.
    public enum Greeting: Hashable, Sendable {
        /// The connection is served, after the TLS handshake if the server uses TLS.
        case serve
        /// The connection is ended before the TLS handshake or the first request.
        case end(Script.Ending)
        /// Nothing is read or written until the client closes the connection or its sending side, or the server stops;
        /// with TLS the handshake hangs.
        case hang
    }
}

/// An endless pattern of bytes in which byte `i` is `i % 251`, so that lost and repeated pieces are detected.
enum GeneratedBytes {
    /// The period in bytes, a multiple of that of the pattern, so that all pieces of this size are equal.
    static let period = 251 * 256
    /// The first period of the pattern.
    static let piece: [UInt8] = (0..<period).map { UInt8($0 % 251) }

    /// Returns the bytes from an offset, at most `count` and at most up to the end of the period.
    static func slice(from offset: Int64, atMost count: Int64) -> ArraySlice<UInt8> {
        let start = Int(offset % Int64(period))
        return piece[start..<start + Int(min(count, Int64(period - start)))]
    }
}

extension StubServer {
    /// Returns the bytes that ``Reply/Body/generated(_:)`` sends: byte `i` is `i % 251`.
    ///
    /// - Parameter count: The number of bytes; a negative number counts as 0.
    public static func generatedBytes(_ count: Int) -> Data {
        var data = Data(capacity: max(0, count))
        while data.count < count {
            data.append(contentsOf: GeneratedBytes.slice(from: Int64(data.count), atMost: Int64(count - data.count)))
        }
        return data
    }
}
