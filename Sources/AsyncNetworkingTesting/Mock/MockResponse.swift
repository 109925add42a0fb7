// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import HTTPTypes

/// What a ``MockTransport`` answers with: a list of steps, one of which is the head.
///
/// A list without a head hangs until the task is cancelled or the transport is shut down.
public struct MockResponse: Sendable {
    /// What happens, in order.
    public var steps: [Step]
    /// The trailer fields after the body.
    public var trailers: HTTPFields

    /// Creates a response from steps.
    public init(_ steps: [Step], trailers: HTTPFields = [:]) {
        self.steps = steps
        self.trailers = trailers
    }

    /// Creates a response with a body of these chunks.
    public init(
        status: HTTPResponse.Status = .ok, headers: HTTPFields = [:], chunks: [Data] = [], trailers: HTTPFields = [:]
    ) {
        self.init([.head(status, headers)] + chunks.map { .chunk($0) }, trailers: trailers)
    }

    /// One thing that happens.
    public enum Step: Sendable {
        /// An interim head is reported.
        case informational(HTTPResponse.Status, HTTPFields = [:])
        /// The head arrives.
        case head(HTTPResponse.Status, HTTPFields = [:])
        /// A piece of the body arrives.
        case chunk(Data)
        /// Nothing happens for a while, by the transport's clock.
        case pause(Duration)
        /// Nothing happens until the gate is open.
        case wait(ScriptGate)
        /// Nothing happens until the task is cancelled or the transport is shut down.
        case hang
        /// The exchange fails.
        case fail(any Error)
    }

    // MARK: Words

    /// A response with JSON text.
    public static func json(_ text: String, status: HTTPResponse.Status = .ok) -> MockResponse {
        MockResponse(status: status, headers: [.contentType: "application/json"], chunks: [Data(text.utf8)])
    }

    /// A response with plain text.
    public static func text(_ text: String, status: HTTPResponse.Status = .ok) -> MockResponse {
        MockResponse(status: status, headers: [.contentType: "text/plain; charset=utf-8"], chunks: [Data(text.utf8)])
    }

    /// A response with bytes.
    public static func data(_ data: Data, headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(headers: headers, chunks: [data])
    }

    /// A response without a body.
    public static func status(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(status: status, headers: headers)
    }

    /// A redirect without a body.
    public static func redirect(_ status: HTTPResponse.Status, to location: String) -> MockResponse {
        MockResponse(status: status, headers: [.location: location])
    }

    /// No response but an error.
    public static func failure(_ error: any Error) -> MockResponse {
        MockResponse([.fail(error)])
    }

    /// No response at all.
    public static var hang: MockResponse { MockResponse([.hang]) }

    /// Inserts interim heads before everything else.
    public func informational(_ status: HTTPResponse.Status, _ headers: HTTPFields = [:]) -> MockResponse {
        MockResponse([.informational(status, headers)] + steps, trailers: trailers)
    }
}
