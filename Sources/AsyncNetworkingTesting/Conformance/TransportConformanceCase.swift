// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A test case for conformance to `Transport`, to be passed to a parameterized test.
///
/// ```swift
/// @Test(arguments: TransportConformanceCase.all)
/// func `the engine is a transport`(_ testCase: TransportConformanceCase) async throws {
///     try await testCase.run { try CurlTransport() }
/// }
/// ```
///
/// Cases are independent of a test library: a failing case throws a ``ConformanceError``, or the unexpected error of
/// the transport. Give the test a time limit, which ends it if the transport hangs.
public struct TransportConformanceCase: Sendable, CustomStringConvertible {
    /// The requirement that the case checks, as a sentence; unique among ``all``.
    public let name: String
    /// Returns the behaviour of the server.
    let script: @Sendable (ScriptGate) -> Script
    /// Performs and checks the exchanges.
    let check: @Sendable (Fixture) async throws -> Void

    init(
        _ name: String, _ script: @autoclosure @escaping @Sendable () -> Script,
        check: @escaping @Sendable (Fixture) async throws -> Void
    ) {
        self.name = name
        self.script = { _ in script() }
        self.check = check
    }

    init(
        _ name: String, gated script: @escaping @Sendable (ScriptGate) -> Script,
        check: @escaping @Sendable (Fixture) async throws -> Void
    ) {
        self.name = name
        self.script = script
        self.check = check
    }

    /// The same as ``name``, for the reports of a test library.
    public var description: String { name }

    /// Tests a transport with a new ``StubServer``, and shuts the transport down, even if the case fails, but not if
    /// the server cannot be started.
    ///
    /// - Parameters:
    ///   - options: The options of the server; by default plain HTTP on a free port of 127.0.0.1. With TLS, `transfer`
    ///     must trust its certificate; with a Unix-domain socket, `transfer` must contain its path.
    ///   - transfer: The options of each request, which should not use a proxy; by default the default options of
    ///     requests, but without a proxy.
    ///   - makeTransport: Creates the transport. It is called once, before the server is started.
    /// - Throws: ``ConformanceError`` if the transport violates the requirement, or else an unexpected error of the
    ///   transport or of `makeTransport`; `SystemError` or ``OpenSSLError`` if the server cannot be started;
    ///   ``ActivityTimeout`` if an expected request does not arrive within 30 s; `CancellationError` if the task is
    ///   cancelled.
    public func run(
        options: StubServer.Options = .init(), transfer: TransferOptions = TransferOptions().with { $0.proxy = .none },
        makeTransport: () throws -> any Transport
    ) async throws {
        try await run(
            options: options, transfer: transfer, at: { $0.url("/conformance") }, makeTransport: makeTransport)
    }

    /// Tests a transport with a new ``StubServer``, as ``run(options:transfer:makeTransport:)``, but possibly through a
    /// server that forwards requests, at the URL that `url` returns.
    package func run(
        options: StubServer.Options = .init(), transfer: TransferOptions, at url: (StubServer) -> URL,
        makeTransport: () throws -> any Transport
    ) async throws {
        let gate = try ScriptGate()
        let transport = try makeTransport()
        try await StubServer.with(options) { server in
            let script = script(gate)
            server.fallback { _ in script }
            try await finishing(transport) {
                try await check(
                    Fixture(
                        transport: transport, url: url(server), options: transfer, gate: gate,
                        requests: { try await server.requests(count: $0) },
                        wait: { condition in try await server.activity { condition($0) } }))
            }
        }
    }

    /// Tests a mock transport without a server, and shuts it down, even if the case fails.
    ///
    /// Requirements for the server's connections, such as that an abandoned exchange ends its connection, are not
    /// checked. There is no time limit on the wait for an expected request.
    ///
    /// - Parameter makeMock: Creates the transport from the script of the case, once; see
    ///   ``MockTransport/init(script:clock:)``.
    /// - Throws: ``ConformanceError`` if the transport violates the requirement, or else an unexpected error of the
    ///   transport; `SystemError` if the process has too many open files; `CancellationError` if the task is cancelled.
    public func run(makeMock: (Script) -> MockTransport) async throws {
        let gate = try ScriptGate()
        let transport = makeMock(script(gate))
        guard let url = URL(string: "http://mock.example/conformance") else { return }
        try await finishing(transport) {
            try await check(
                Fixture(
                    transport: transport, url: url, options: nil, gate: gate,
                    requests: { try await transport.requests(count: $0).map(RecordedRequest.init) }, wait: { _ in }))
        }
    }

    /// Runs a closure and then shuts the transport down, even if the closure throws.
    private func finishing(_ transport: any Transport, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch {
            await transport.shutdown()
            throw error
        }
        await transport.shutdown()
    }
}

extension TransportConformanceCase {
    /// All conformance cases: on responses, on requests, and on the ends of exchanges.
    public static let all = responses + requests + endings
}

/// A violation of the requirements for transports, found by a ``TransportConformanceCase``.
public struct ConformanceError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// A sentence with the expected and the actual behaviour, which test libraries report.
    public let description: String

    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// Creates an error with a description, for a program's own checks of a transport.
    ///
    /// - Parameter description: A sentence with the expected and the actual behaviour.
    public init(_ description: String) {
        self.description = description
    }
}

/// Throws unless `actual` equals `expected`.
func require<Value: Equatable>(_ what: String, _ actual: Value, is expected: Value) throws(ConformanceError) {
    guard actual == expected else {
        throw ConformanceError("\(what): expected \(expected), got \(actual).")
    }
}

/// Throws unless `work` throws an error that satisfies `isExpected`.
func requireFailure(
    _ what: String, where isExpected: (any Error) -> Bool, of work: () async throws -> Void
) async throws(ConformanceError) {
    do {
        try await work()
    } catch {
        guard isExpected(error) else { throw ConformanceError("\(what) threw an unexpected error: \(error).") }
        return
    }
    throw ConformanceError("\(what) succeeded instead of throwing an error.")
}

/// Throws unless `work` throws a transport error with the given reason.
func requireFailure(
    _ what: String, _ reason: TransportError.Reason, of work: () async throws -> Void
) async throws(ConformanceError) {
    try await requireFailure(what, where: { ($0 as? TransportError)?.reason == reason }, of: work)
}
