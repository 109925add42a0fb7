// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSerialization
import FoundationEssentials
import Synchronization

/// The figures of a whole call: of all its exchanges, attempts, redirects and waits.
///
/// ``TaskEvent/ended(_:_:)`` carries them. ``Response/metrics`` has those of the last exchange alone.
public struct CallMetrics: Hashable, Sendable {
    /// The time from ``TaskEvent/began`` until the response was received and its body was read, or until the call failed.
    /// The work of a serializer is not included, but the closure that reads a stream is.
    public var duration: Duration = .zero
    /// The status of the response; `nil` if there was none, as when the last exchange failed.
    public var statusCode: Int?
    /// The HTTP version of the response; `nil` if there was none.
    public var httpVersion: HTTPVersion?
    /// The source of the response; `nil` if there was none.
    public var source: ResponseSource?
    /// The number of exchanges with servers: 0 for a response from the cache or an interceptor, more than 1 after
    /// redirects, challenges and retries.
    public var exchangeCount = 0
    /// The number of retries.
    public var retryCount = 0
    /// The number of redirects that were followed.
    public var redirectCount = 0
    /// The number of bytes of request bodies sent, over all exchanges that have ended; see
    /// ``ANHTTP/TransferMetrics/requestBodyBytes``.
    public var requestBodyBytes: Int64 = 0
    /// The number of bytes of response bodies received, over all exchanges that have ended; see
    /// ``ANHTTP/TransferMetrics/responseBodyBytes``.
    public var responseBodyBytes: Int64 = 0

    /// Creates the figures of a call that has not begun.
    package init() {}
}

/// Counts the events of a call, which occur on any thread.
struct CallCounts: ~Copyable, Sendable {
    private let exchanges = Atomic(0)
    private let retries = Atomic(0)
    private let redirects = Atomic(0)
    private let sent = Atomic<Int64>(0)
    private let received = Atomic<Int64>(0)

    /// Returns the number of an exchange that begins, starting at 1.
    func beginExchange() -> Int { exchanges.wrappingAdd(1, ordering: .relaxed).newValue }

    func note(_ event: ExchangeEvent) {
        guard case .finished(let metrics) = event else { return }
        sent.wrappingAdd(metrics.requestBodyBytes, ordering: .relaxed)
        received.wrappingAdd(metrics.responseBodyBytes, ordering: .relaxed)
    }

    func note(_ event: TaskEvent) {
        switch event {
        case .retrying: retries.wrappingAdd(1, ordering: .relaxed)
        case .redirected: redirects.wrappingAdd(1, ordering: .relaxed)
        default: break
        }
    }

    /// The figures at the end of a call, whose exchanges have ended.
    func metrics(of call: Call) -> CallMetrics {
        var metrics = CallMetrics()
        metrics.duration = call.history.duration
        metrics.exchangeCount = exchanges.load(ordering: .relaxed)
        metrics.retryCount = retries.load(ordering: .relaxed)
        metrics.redirectCount = redirects.load(ordering: .relaxed)
        metrics.requestBodyBytes = sent.load(ordering: .relaxed)
        metrics.responseBodyBytes = received.load(ordering: .relaxed)
        if let answer = call.answer?.value {
            metrics.statusCode = answer.status
            metrics.httpVersion = answer.version
            // An interceptor may have made it.
            metrics.source =
                answer.body.origin ?? (metrics.exchangeCount == 0 ? nil : answer.body.metrics?.source ?? .network)
        }
        return metrics
    }
}

extension CallMetrics {
    /// The figures as the end of a line; empty for a task that ended before its call.
    var words: String {
        guard let statusCode else { return "" }
        var words = " with \(statusCode) after \(duration.forPeople)"
        if exchangeCount > 1 { words += ", \(exchangeCount) exchanges" }
        if retryCount > 0 { words += retryCount == 1 ? ", 1 retry" : ", \(retryCount) retries" }
        if redirectCount > 0 { words += redirectCount == 1 ? ", 1 redirect" : ", \(redirectCount) redirects" }
        if requestBodyBytes > 0 { words += ", \(requestBodyBytes) bytes sent" }
        if responseBodyBytes > 0 { words += ", \(responseBodyBytes) bytes received" }
        if let source, source != .network { words += ", \(source.rawValue)" }
        return words
    }
}

extension TaskEvent {
    /// The event as a step of its call's history; `nil` if it does not belong between two exchanges.
    var step: CallHistory.Event? {
        switch self {
        case .redirected(let head, let request):
            .redirected(status: head.status.code, to: Redaction.standard.url(request.url.absoluteString))
        case .answeringChallenge: .answeringChallenge
        case .refreshingToken: .refreshingToken
        case .waitingForConnectivity(let error): .waitingForConnectivity(error.label)
        case .retrying(let attempt): .retrying(after: attempt)
        default: nil
        }
    }
}

extension ErrorLabel {
    /// Creates the label of an error that a session throws: ``other`` for the program's own.
    package init(_ error: any Error) {
        self =
            switch error {
            case let error as SessionError: error.kind
            case let error as TransportError: error.label
            case let error as SerializationError: error.label
            case is CancellationError: .cancelled
            default: .other
            }
    }
}

extension SessionError {
    /// A short, stable name of the error, from the closed set in <doc:Errors>, for metrics and logs; for a download that can
    /// be resumed, that of its ``cause``. A release may add labels, and does not rename any.
    public var label: String { kind.rawValue }

    /// Returns the ``label`` of an error that a session throws, or of another one: `other` for the program's own.
    public static func label(of error: any Error) -> String { ErrorLabel(error).rawValue }

    fileprivate var kind: ErrorLabel {
        switch self {
        case .transport(let error): error.label
        case .serialization(let error): error.label
        case .redirect: .redirect
        case .authentication: .authentication
        case .invalidCookie, .cookiesNotStored: .cookie
        case .notCached: .notCached
        case .closedResponse: .closedResponse
        case .file: .file
        case .notResumable: .notResumable
        case .digest, .size: .digest
        case .upload: .upload
        case .circuitOpen: .circuitOpen
        case .interrupted(let error, _): error.kind
        case .invalidated: .shutDown
        }
    }
}

extension SerializationError {
    var label: ErrorLabel {
        switch self {
        case .url, .parameters, .multipart: .requestEncoding
        case .rejected(let rejection): rejection.rejectsStatus ? .statusRejected : .mediaTypeRejected
        case .emptyBody, .text, .json, .propertyList, .xml, .decoding, .jsonStream, .parts, .compound: .responseDecoding
        }
    }
}

extension SessionError {
    /// The course of the call as text, for logs and reports of errors: its attempts, redirects and waits with their
    /// times, what each phase of an exchange took, and the facts of the failure.
    ///
    /// ```text
    /// connection_refused: https://api.example.com/users?page=…
    ///      0 ms  begins
    ///    112 ms  attempt 1 failed: status 503 (name 12 ms, connect 20 ms, TLS 31 ms, wait 47 ms)
    ///    612 ms  attempt 2, after a wait of 500 ms
    ///    613 ms  No connection could be made: the port is closed; check that the server is running
    ///   address: 192.0.2.7:443
    ///   errno: 111
    /// ```
    ///
    /// It has no secrets of URLs, and no texts of header fields, bodies and the program. An error that is neither of an
    /// exchange nor of a rejected response has only its label and, unless that may have such texts, its description.
    public var timeline: String {
        switch cause {
        case .transport(let error): error.timeline
        case .serialization(.rejected(let rejection)): rejection.timeline
        case let error: error.label + (error.plainText.map { ": \($0)" } ?? "")
        }
    }

    /// The description of an error for events, without texts of header fields, bodies and the program, but the paths of
    /// files: its label in place of a description that may have some, and the type of an error of the program's own.
    static func outline(of error: any Error) -> String {
        guard let error = lifting(error) as? SessionError else { return error.outline }
        return error.plainText ?? "\(error.label)."
    }

    /// The description, or a part of it, without texts of header fields, bodies and the program; `nil` if there is none.
    private var plainText: String? {
        switch self {
        case .transport(let error): error.outline
        case .serialization(.rejected(let rejection)):
            "\(rejection.words) (\(Redaction.standard.url(rejection.head.url.absoluteString)))."
        case .interrupted(let error, let data):
            "\(Self.outline(of: error)) The download can be resumed after \(data.offset) bytes."
        case .serialization, .invalidCookie, .notResumable, .upload(.server): nil
        case .redirect, .authentication, .cookiesNotStored, .notCached, .closedResponse, .file, .digest, .size, .upload,
            .circuitOpen, .invalidated:
            description
        }
    }
}

extension Rejection {
    fileprivate var words: String {
        rejectsStatus ? "status \(head.status.code) was rejected" : "the media type was rejected"
    }

    fileprivate var timeline: String {
        let label = SerializationError.rejected(self).label.rawValue
        return head.callHistory.timeline(
            "\(label): \(Redaction.standard.url(head.url.absoluteString))", end: words, metrics: nil,
            facts: [("type", mediaType ?? "none"), ("body", "\(body.count) bytes")] + head.retryHistory.facts)
    }
}
