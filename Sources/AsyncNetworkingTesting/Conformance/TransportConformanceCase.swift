// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

/// One thing that every `Transport` must do, to be fed to parameterised tests.
///
/// ```swift
/// @Test(arguments: TransportConformanceCase.all)
/// func `the engine is a transport`(_ testCase: TransportConformanceCase) async throws {
///     try await testCase.run { try CurlTransport() }
/// }
/// ```
///
/// A case knows no test library: it throws a ``ConformanceFailure``. Where the transport itself hangs, the test's time limit
/// ends it.
public struct TransportConformanceCase: Sendable, CustomStringConvertible {
    /// What the case demands, as a sentence.
    public let name: String
    /// What the server does.
    let script: @Sendable (ScriptGate) -> Script
    /// What is tried and demanded.
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

    /// The name.
    public var description: String { name }

    /// Tries a transport against a ``StubServer`` of its own, and shuts it down.
    ///
    /// - Parameters:
    ///   - options: How the server is made; with TLS the transfer options must trust its certificate.
    ///   - transfer: The options of each request; they should use no proxy.
    ///   - makeTransport: Makes the transport.
    /// - Throws: ``ConformanceFailure``, or what the transport throws where it must not.
    public func run(
        options: StubServer.Options = .init(), transfer: TransferOptions = TransferOptions().with { $0.proxy = .none },
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
                        transport: transport, url: server.url("/conformance"), options: transfer, gate: gate,
                        requests: { try await server.requests(count: $0) },
                        wait: { condition in try await server.activity { condition($0) } }))
            }
        }
    }

    /// Tries a mock: `makeTransport` makes one that answers by the case's script.
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

    /// Shuts the transport down whatever happens.
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
