// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import HTTPTypes

/// A response of a ``MockTransport``: a list of steps, including the head.
///
/// A response without a head hangs until the task is cancelled or the transport is shut down.
///
/// After a head in response to a HEAD request, or with status 204 or 304, all further steps are skipped. Steps in the
/// wrong order fail the exchange with `TransportError.Reason.invalidResponse`: a chunk before the head, or another head
/// or an interim response after it.
public struct MockResponse: Sendable {
    /// The steps of the response, performed in order.
    public var steps: [Step]
    /// The trailer fields, which the response body provides at its end (`ResponseBody.trailers`); empty by default.
    public var trailers: HTTPFields
    /// The actions of a script after it has accepted a WebSocket connection; `nil` if it does not accept one.
    var webSocketActions: [Script.Action]?

    /// Creates a response from steps.
    ///
    /// - Parameters:
    ///   - steps: The steps, performed in order.
    ///   - trailers: The trailer fields after the body; none by default.
    public init(_ steps: [Step], trailers: HTTPFields = [:]) {
        self.steps = steps
        self.trailers = trailers
    }

    /// Creates a response from its parts: a head, and a step for each chunk.
    ///
    /// - Parameters:
    ///   - status: The status; 200 by default.
    ///   - headers: The header fields, to which none are added; empty by default.
    ///   - chunks: The chunks of the body; none by default. Empty ones are skipped.
    ///   - trailers: The trailer fields after the body; none by default.
    public init(
        status: HTTPResponse.Status = .ok, headers: HTTPFields = [:], chunks: [Data] = [], trailers: HTTPFields = [:]
    ) {
        self.init([.head(status, headers)] + chunks.map { .chunk($0) }, trailers: trailers)
    }

    /// A step of a response, performed after the previous one is complete.
    public enum Step: Sendable {
        /// Reports an interim response (status 100 to 199), by default without header fields.
        case informational(HTTPResponse.Status, HTTPFields = [:])
        /// Provides the head of the final response, by default without header fields.
        case head(HTTPResponse.Status, HTTPFields = [:])
        /// Provides a chunk of the body; an empty one is skipped.
        case chunk(Data)
        /// Waits for a duration on the transport's clock; cancelling the task ends the pause.
        case pause(Duration)
        /// Waits until the gate is open, without a time limit; cancelling the task ends the wait.
        case wait(ScriptGate)
        /// Waits until the task is cancelled or the transport is shut down.
        case hang
        /// Fails the exchange: the error is thrown by `perform`, or after the head by reading the body.
        case fail(any Error)
    }

    // MARK: Common responses

    /// Returns a response with JSON text and `Content-Type: application/json`, by default with status 200. The text is
    /// not validated.
    public static func json(_ text: String, status: HTTPResponse.Status = .ok) -> MockResponse {
        MockResponse(status: status, headers: [.contentType: "application/json"], chunks: [Data(text.utf8)])
    }

    /// Returns a response with text in UTF-8 and `Content-Type: text/plain; charset=utf-8`, by default with status 200.
    public static func text(_ text: String, status: HTTPResponse.Status = .ok) -> MockResponse {
        MockResponse(status: status, headers: [.contentType: "text/plain; charset=utf-8"], chunks: [Data(text.utf8)])
    }

    /// Returns a response with status 200 and a body of one chunk.
    ///
    /// - Parameters:
    ///   - data: The body.
    ///   - headers: The header fields, to which none are added; empty by default.
    public static func data(_ data: Data, headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(headers: headers, chunks: [data])
    }

    /// Returns a response without a body, by default without header fields.
    public static func status(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(status: status, headers: headers)
    }

    /// Returns a redirect without a body.
    ///
    /// - Parameters:
    ///   - status: The status, such as `.found`.
    ///   - location: The value of `Location`, sent unchanged: a URL, relative or absolute, or anything else.
    public static func redirect(_ status: HTTPResponse.Status, to location: String) -> MockResponse {
        MockResponse(status: status, headers: [.location: location])
    }

    /// Returns a response that fails the exchange with an error before the head; `perform` throws it unchanged.
    public static func failure(_ error: any Error) -> MockResponse {
        MockResponse([.fail(error)])
    }

    /// A response that hangs until the task is cancelled or the transport is shut down.
    public static var hang: MockResponse { MockResponse([.hang]) }

    /// Returns a copy that begins with an interim response, by default without header fields.
    ///
    /// - Parameters:
    ///   - status: The status, 100 to 199.
    ///   - headers: The header fields of the interim response.
    public func informational(_ status: HTTPResponse.Status, _ headers: HTTPFields = [:]) -> MockResponse {
        MockResponse([.informational(status, headers)] + steps, trailers: trailers)
    }
}
