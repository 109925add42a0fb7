// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import HTTPTypes

/// A response of a ``MockTransport``: a list of steps, including the head.
///
/// A response without a head hangs until the task is cancelled or the transport is shut down.
public struct MockResponse: Sendable {
    /// The steps of the response, in order.
    public var steps: [Step]
    /// The trailer fields after the body.
    public var trailers: HTTPFields

    /// Creates a response from steps, by default without trailers.
    public init(_ steps: [Step], trailers: HTTPFields = [:]) {
        self.steps = steps
        self.trailers = trailers
    }

    /// Creates a response from its parts, by default with status 200 and an empty body.
    public init(
        status: HTTPResponse.Status = .ok, headers: HTTPFields = [:], chunks: [Data] = [], trailers: HTTPFields = [:]
    ) {
        self.init([.head(status, headers)] + chunks.map { .chunk($0) }, trailers: trailers)
    }

    /// A step of a response.
    public enum Step: Sendable {
        /// Reports an interim response.
        case informational(HTTPResponse.Status, HTTPFields = [:])
        /// Provides the head.
        case head(HTTPResponse.Status, HTTPFields = [:])
        /// Provides a chunk of the body.
        case chunk(Data)
        /// Waits for a duration on the transport's clock.
        case pause(Duration)
        /// Waits until the gate is open.
        case wait(ScriptGate)
        /// Waits until the task is cancelled or the transport is shut down.
        case hang
        /// Fails the exchange with an error.
        case fail(any Error)
    }

    // MARK: Common responses

    /// Returns a response with JSON text.
    public static func json(_ text: String, status: HTTPResponse.Status = .ok) -> MockResponse {
        MockResponse(status: status, headers: [.contentType: "application/json"], chunks: [Data(text.utf8)])
    }

    /// Returns a response with plain text.
    public static func text(_ text: String, status: HTTPResponse.Status = .ok) -> MockResponse {
        MockResponse(status: status, headers: [.contentType: "text/plain; charset=utf-8"], chunks: [Data(text.utf8)])
    }

    /// Returns a response with status 200 and bytes.
    public static func data(_ data: Data, headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(headers: headers, chunks: [data])
    }

    /// Returns a response without a body.
    public static func status(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(status: status, headers: headers)
    }

    /// Returns a redirect without a body.
    public static func redirect(_ status: HTTPResponse.Status, to location: String) -> MockResponse {
        MockResponse(status: status, headers: [.location: location])
    }

    /// Returns a response that fails the exchange with an error.
    public static func failure(_ error: any Error) -> MockResponse {
        MockResponse([.fail(error)])
    }

    /// A response that hangs until the task is cancelled or the transport is shut down.
    public static var hang: MockResponse { MockResponse([.hang]) }

    /// Returns the response preceded by an interim response.
    public func informational(_ status: HTTPResponse.Status, _ headers: HTTPFields = [:]) -> MockResponse {
        MockResponse([.informational(status, headers)] + steps, trailers: trailers)
    }
}
