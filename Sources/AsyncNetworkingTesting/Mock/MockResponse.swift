// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import HTTPTypes

/// A response of a ``MockTransport``: a list of steps, including the head.
///
/// The function of ``MockTransport/init(clock:_:)`` returns the response for a request; ``MockTransport/init(_:_:)``
/// receives several in advance.
///
/// The steps up to the head are performed before the transport returns the response. If the body is streamed, the others
/// are performed while it is read, and not at all if it is not read; if it is collected, all are performed before. After its last step, a response without a head hangs until the task is cancelled or the transport
/// is shut down.
///
/// After a head in response to a HEAD request, or with status 204 or 304, all further steps are skipped. Steps in the
/// wrong order fail the exchange with `TransportError.Reason.invalidResponse`: a chunk before the head, or another head
/// or an interim response after it.
public struct MockResponse: Sendable {
    /// The steps of the response, performed in order: first those up to the head; then the others, while the body is
    /// read if it is streamed, or at once if it is collected. Without a head among them, the response hangs after the
    /// last one.
    public var steps: [Step]
    /// The trailer fields, which the response body provides after its end was read (`ResponseBody.trailers`); empty by
    /// default.
    public var trailers: HTTPFields
    /// The actions of a script after it has accepted a WebSocket connection; `nil` if it does not accept one.
    var webSocketActions: [Script.Action]?

    /// Creates a response from steps.
    ///
    /// - Parameters:
    ///   - steps: The steps, performed in order. Without a head among them, the response hangs after the last one.
    ///   - trailers: The trailer fields after the body; none by default.
    public init(_ steps: [Step], trailers: HTTPFields = [:]) {
        self.steps = steps
        self.trailers = trailers
    }

    /// Creates a response from its parts: a head, and a step for each chunk.
    ///
    /// - Parameters:
    ///   - status: The status; 200 by default. With 204 or 304, and in response to HEAD, `chunks` are not provided.
    ///   - headers: The header fields, to which none are added, not even `Content-Length`; empty by default.
    ///   - chunks: The chunks of the body; none by default. Empty ones are skipped.
    ///   - trailers: The trailer fields after the body; none by default.
    public init(
        status: HTTPResponse.Status = .ok, headers: HTTPFields = [:], chunks: [Data] = [], trailers: HTTPFields = [:]
    ) {
        self.init([.head(status, headers)] + chunks.map { .chunk($0) }, trailers: trailers)
    }

    /// A step of a response, performed after the previous one is complete.
    public enum Step: Sendable {
        /// Reports an interim response as an event (`ExchangeEvent.informational`), by default without header fields.
        /// The status should be 100 to 199, and is not checked.
        case informational(HTTPResponse.Status, HTTPFields = [:])
        /// Provides the head of the final response, by default without header fields.
        ///
        /// `Content-Length`, if present, is the total of the progress events. It is not compared with the body.
        case head(HTTPResponse.Status, HTTPFields = [:])
        /// Provides a chunk of the body, as a single chunk for its reader if the body is streamed; an empty one is
        /// skipped.
        case chunk(Data)
        /// Waits for a duration on the transport's clock; zero or a negative one for no pause.
        ///
        /// Cancelling the task ends the pause with `CancellationError`. A shutdown of the transport takes effect after
        /// the pause.
        case pause(Duration)
        /// Waits until the gate is open, without a time limit.
        ///
        /// Cancelling the task ends the wait with `CancellationError`. A shutdown of the transport takes effect after
        /// the wait.
        case wait(ScriptGate)
        /// Waits until the task is cancelled or the transport is shut down, and fails the exchange with
        /// `CancellationError` or `TransportError.Reason.shutDown`.
        case hang
        /// Fails the exchange with an error, which is thrown unchanged: by `open` if the step precedes the head or
        /// the body is collected, otherwise by reading the body.
        case fail(any Error)
    }

    // MARK: Common responses

    /// Returns a response with JSON text, by default with status 200, and with `Content-Type: application/json` as its
    /// only header field. The text is sent in UTF-8 and not validated.
    public static func json(_ text: String, status: HTTPResponse.Status = .ok) -> MockResponse {
        MockResponse(status: status, headers: [.contentType: "application/json"], chunks: [Data(text.utf8)])
    }

    /// Returns a response with text in UTF-8, by default with status 200, and with
    /// `Content-Type: text/plain; charset=utf-8` as its only header field.
    public static func text(_ text: String, status: HTTPResponse.Status = .ok) -> MockResponse {
        MockResponse(status: status, headers: [.contentType: "text/plain; charset=utf-8"], chunks: [Data(text.utf8)])
    }

    /// Returns a response with status 200 and bytes.
    ///
    /// - Parameters:
    ///   - data: The body, provided as one chunk; empty for a response without a body.
    ///   - headers: The header fields, to which none are added, not even `Content-Length`; empty by default.
    public static func data(_ data: Data, headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(headers: headers, chunks: [data])
    }

    /// Returns a response with a status and without a body. No header fields are added to `headers`, which are empty by
    /// default.
    public static func status(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(status: status, headers: headers)
    }

    /// Returns a redirect without a body, with `Location` as its only header field.
    ///
    /// - Parameters:
    ///   - status: The status, such as `.found`.
    ///   - location: The value of `Location`: a URL, relative or absolute, or any other text. Bytes that are invalid in
    ///     a field value (RFC 9110 §5.5), such as line feeds, are replaced by spaces, and surrounding spaces and tabs
    ///     are removed.
    public static func redirect(_ status: HTTPResponse.Status, to location: String) -> MockResponse {
        MockResponse(status: status, headers: [.location: location])
    }

    /// Returns a response that fails the exchange with an error before the head; `open` throws it unchanged.
    public static func failure(_ error: any Error) -> MockResponse {
        MockResponse([.fail(error)])
    }

    /// A response without a head, which hangs until the task is cancelled or the transport is shut down; the exchange
    /// then fails with `CancellationError` or `TransportError.Reason.shutDown`.
    public static var hang: MockResponse { MockResponse([.hang]) }

    /// Returns a copy of the response that begins with an interim response. The interim response of a second call
    /// precedes that of the first.
    ///
    /// - Parameters:
    ///   - status: The status, which should be 100 to 199 and is not checked.
    ///   - headers: The header fields of the interim response; empty by default.
    public func informational(_ status: HTTPResponse.Status, _ headers: HTTPFields = [:]) -> MockResponse {
        MockResponse([.informational(status, headers)] + steps, trailers: trailers)
    }
}
