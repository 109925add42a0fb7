// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch
import HTTPTypes

extension Request {
    /// Copies method, URL, header fields and body from a Foundation request.
    ///
    /// - Parameters:
    ///   - request: The request. Its cache policy, timeout and cookie settings are not copied.
    ///   - replaceStream: Returns a new stream when the body must be sent again.
    mutating func take(
        _ request: URLRequest, replaceStream: (@Sendable () async -> UncheckedSendable<InputStream?>)? = nil
    ) throws(SessionError) {
        guard let url = request.url else { throw .serialization(.url(.noBase(""))) }
        self.url = url
        let name = request.httpMethod ?? "GET"
        guard let method = HTTPRequest.Method(name) else {
            throw .transport(TransportError(.invalidRequest(.method(name))))
        }
        self.method = method
        var length: Int64?
        for (name, value) in (request.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
            do throws(TransportError) { try headers.checkCount(adding: 1) } catch { throw .transport(error) }
            guard let fieldName = HTTPField.Name(name) else {
                throw .transport(TransportError(.invalidRequest(.headerName(name))))
            }
            guard fieldName != .contentLength else {
                length = Int64(value)
                continue
            }
            headers.append(HTTPField(name: fieldName, value: value))
        }
        if let stream = request.httpBodyStream {
            body = .inputStream(stream, length: length, replace: replaceStream)
        } else if let data = request.httpBody {
            body = .bytes(data)
        }
    }
}

extension URLRequest {
    /// Creates the Foundation form of a core request. Settings are copied from the original request of the task; a
    /// body from a file or a stream is not converted.
    init(_ request: Request, basedOn original: URLRequest) {
        self = original
        url = request.url
        httpMethod = request.method.rawValue
        allHTTPHeaderFields = request.headers.dictionary
        switch request.body.content {
        case .none, .file: httpBody = nil
        case .bytes(let data): httpBody = data
        case .writer: break
        }
    }
}

extension URLRequest {
    /// Sets a header field and replaces one whose name differs only in case. Foundation's
    /// `setValue(_:forHTTPHeaderField:)` would change the case of the name.
    mutating func setField(_ name: String, _ value: String) {
        var fields = allHTTPHeaderFields ?? [:]
        fields.setField(name, value)
        allHTTPHeaderFields = fields
    }
}

extension URLRequest {
    /// Returns whether a body that the other request does not show, or whose stream was already read, is still meant.
    func keepsHiddenBody(of other: URLRequest) -> Bool {
        guard httpBodyStream === other.httpBodyStream else { return false }
        return other.httpBodyStream != nil || other.httpBody == nil && httpMethod == other.httpMethod
    }

    /// Returns whether another request has the same URL, method, header fields and body. `==` of Foundation on Linux
    /// ignores the header fields and the bytes of the body.
    func hasSameMessage(as other: URLRequest) -> Bool {
        url == other.url && httpMethod == other.httpMethod && allHTTPHeaderFields == other.allHTTPHeaderFields
            && httpBody == other.httpBody && httpBodyStream === other.httpBodyStream
    }
}

extension [String: String] {
    /// Sets a header field and replaces one whose name differs only in case; `nil` removes it.
    mutating func setField(_ name: String, _ value: String?) {
        for other in keys where other.caseInsensitiveCompare(name) == .orderedSame { self[other] = nil }
        self[name] = value
    }
}

extension HTTPURLResponse {
    /// Creates a Foundation response from a response head; `nil` if Foundation rejects it.
    static func make(_ head: ResponseHead) -> HTTPURLResponse? {
        TaskResponse(head)
    }
}

extension HTTPFields {
    /// Creates fields from those of Foundation; ignores names that are not valid.
    init(valid fields: [AnyHashable: Any]) {
        self.init()
        for (name, value) in fields {
            guard let name = HTTPField.Name("\(name)") else { continue }
            self[name] = "\(value)"
        }
    }

    /// The fields as a dictionary; values of fields with the same name are joined by commas (RFC 9110 §5.3). Of names
    /// that differ only in case, the first is the key.
    var dictionary: [String: String] {
        let values = Dictionary(map { ($0.name, $0.value) }) { "\($0), \($1)" }
        return Dictionary(uniqueKeysWithValues: values.map { ($0.key.rawName, $0.value) })
    }
}

extension ResponseHead {
    /// The expected number of bytes in the body; -1 if it is unknown, which includes bodies that are decompressed.
    var expectedContentLength: Int64 {
        isDecodable ? -1 : contentLength ?? -1
    }
}

/// The stream of a request whose body this library created. It is empty and carries the `RequestBody` that is sent
/// instead.
final class BodyStream: InputStream {
    let body: RequestBody

    init(_ body: RequestBody) {
        self.body = body
        super.init(data: Data())
    }
}

extension RequestBody {
    /// Returns a body that reads from a stream and, each time it must be sent again, from a new stream that `replace`
    /// returns. Without a new stream, reading fails with `RequestBodyFailure.notReplayable`.
    static func inputStream(
        _ stream: InputStream, length: Int64?, replace: (@Sendable () async -> UncheckedSendable<InputStream?>)?
    ) -> RequestBody {
        if let stream = stream as? BodyStream { return stream.body }
        let first = Lock<UncheckedSendable<InputStream>?>(UncheckedSendable(stream))
        return .writer(length: length, isReplayable: replace != nil) { writer in
            var opened = first.set(\.self, to: nil)
            if opened == nil { opened = await replace?().value.map(UncheckedSendable.init) }
            guard let stream = opened else { throw TransportError.RequestBodyFailure.notReplayable }
            let queue = DispatchQueue(label: "com.alamofire.networking.body-stream")
            // The task keeps it; and the other end of a bound pair learns that nothing is read any more.
            defer { queue.async { stream.value.close() } }
            while let chunk = try await stream.nextChunk(on: queue) { try await writer.write(chunk) }
        }
    }
}

extension UncheckedSendable<InputStream> {
    /// Reads the next chunk on a queue, since reading blocks; `nil` at the end. If the calling task is cancelled, it
    /// fails at once, although a blocked read still occupies the queue.
    fileprivate func nextChunk(on queue: DispatchQueue) async throws -> Data? {
        let cancelled = Result<Data?, any Error>.failure(CancellationError())
        return try await callback(fallback: cancelled) { callback in
            queue.async { callback(Result { try value.readChunk(upTo: 65_536) }) }
        }.get()
    }
}
