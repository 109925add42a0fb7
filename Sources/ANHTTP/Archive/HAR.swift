// SPDX-License-Identifier: MIT

public import FoundationEssentials
import HTTPTypes

/// An HTTP archive (HAR 1.2): requests with their responses and timings, as browsers export and import them.
///
/// A session writes one with a `HARRecorder`. ``html(title:)`` shows it as a page.
public struct HAR: Hashable, Sendable {
    /// The requests, in the order in which they ended.
    package var entries: [Entry]

    /// Creates an archive of entries.
    package init(entries: [Entry] = []) {
        self.entries = entries
    }

    /// Parses an archive, also of another program, and also one whose end is missing because its writer was killed: its
    /// complete entries are read. Members of entries may be missing or `null`, except the request, and a program's own,
    /// whose names begin with an underscore, may have any type.
    ///
    /// - Throws: `DecodingError` if the data is not an archive.
    public init(_ data: Data) throws {
        let file: File
        do {
            file = try JSONDecoder().decodeUntrusted(File.self, from: data)
        } catch {
            let repairs = Self.repairs(of: data).lazy
            guard let read = repairs.compactMap({ try? JSONDecoder().decodeUntrusted(File.self, from: $0) }).first
            else {
                throw error
            }
            file = read
        }
        entries = file.log.entries
    }

    /// The number of requests.
    package var count: Int { entries.count }

    /// The archive as a file, in JSON.
    package func data() throws -> Data { Self.data(try entries.map(Self.line)) }

    // MARK: The file

    // An entry is appended by writing it, and the end again, over the last end. The file is an archive after each write.

    /// The beginning of a file, before its entries, which are lines separated by commas.
    package static let beginning = Data(
        #"{"log":{"version":"1.2","creator":{"name":"AsyncNetworking","version":"1"},"entries":[\#n"#.utf8)
    /// The end of a file, after the entries.
    package static let end = Data("\n]}}\n".utf8)

    /// Returns a file of entries, each as its ``line(_:)``.
    package static func data(_ lines: [Data]) -> Data {
        var result = beginning
        for (index, line) in lines.enumerated() {
            if index > 0 { result += Data(",\n".utf8) }
            result += line
        }
        return result + end
    }

    /// Returns an entry as a line, without a line break.
    package static func line(_ entry: Entry) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(entry)
    }

    /// Returns bytes as text, or in Base64.
    package static func text(_ bytes: Data, isComplete: Bool = true) -> (text: String, encoding: String?) {
        // A character may have been cut off.
        for missing in 0...(isComplete ? 0 : 3) {
            if let text = String(validating: bytes.dropLast(missing), as: UTF8.self) { return (text, nil) }
        }
        return (bytes.base64EncodedString(), "base64")
    }

    /// Returns a file that was cut off without its last line, and without its last two lines.
    ///
    /// The last line may be a complete entry, but is not known to be one. The last two may be the end of the file after
    /// the first bytes of an entry, which were written over it.
    private static func repairs(of data: Data) -> [Data] {
        data.indices.reversed().lazy.filter { data[$0] == UInt8(ascii: "\n") }.prefix(2).map { lineEnd in
            var lines = data[..<lineEnd]
            if lines.last == UInt8(ascii: ",") { lines.removeLast() }
            return Data(lines) + end
        }
    }

    private struct File: Decodable {
        var log: Log
    }

    private struct Log: Decodable {
        var entries: [Entry]
    }

    // MARK: The members

    /// One exchange, or an answer of a cache.
    package struct Entry: Hashable, Codable, Sendable {
        /// The time at which it began, as in ISO 8601 with milliseconds.
        package var startedDateTime: String
        /// Its duration in milliseconds: the sum of the ``timings``.
        package var time: Double
        package var request: Request
        package var response: Response
        package var cache = Cache()
        package var timings: Timings
        package var serverIPAddress: String?
        /// The local port of the connection, by which exchanges on one connection are recognized.
        package var connection: String?
        package var comment: String?
        /// The number of the call, which is the same for redirects and retries.
        package var call: UInt64?
        /// The source of the response, such as `cache`; `nil` for the network.
        package var source: String?
        /// The error for which there is no response, or not all of its body.
        package var error: String?
        /// `websocket` for a WebSocket connection; `nil` for others.
        package var resourceType: String?
        /// The messages of a WebSocket connection; `nil` for other exchanges.
        package var webSocketMessages: [Message]?

        /// The ``error`` of a request that failed or was cancelled while another one of its call was answered.
        package static let superseded = "another request of the call was answered first"

        package enum CodingKeys: String, CodingKey {
            case startedDateTime, time, request, response, cache, timings, serverIPAddress, connection, comment
            case call = "_call"
            case source = "_source"
            case error = "_error"
            case resourceType = "_resourceType"
            case webSocketMessages = "_webSocketMessages"
        }

        package init(startedDateTime: String, request: Request, response: Response = Response(), timings: Timings) {
            self.startedDateTime = startedDateTime
            self.request = request
            self.response = response
            self.timings = timings
            time = timings.sum
        }
    }

    /// A message of a WebSocket connection.
    package struct Message: Hashable, Codable, Sendable {
        /// `send` or `receive`.
        package var type: String
        /// The time at which it was sent or read, in seconds since 1970.
        package var time: Double
        /// 1 for text, 2 for bytes (RFC 6455 §5.2).
        package var opcode: Int
        /// The text, or bytes in Base64.
        package var data: String

        package init(_ message: WebSocketMessage, isSent: Bool, at date: Date) {
            type = isSent ? "send" : "receive"
            time = (date.timeIntervalSince1970 * 1000).rounded() / 1000
            switch message {
            case .text(let text): (opcode, data) = (1, text)
            case .binary(let bytes): (opcode, data) = (2, bytes.base64EncodedString())
            }
        }
    }

    /// The states of a cache, which are not known.
    package struct Cache: Hashable, Encodable, Sendable {}

    /// A name with a value.
    package struct Pair: Hashable, Codable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A request.
    package struct Request: Hashable, Codable, Sendable {
        package var method: String
        package var url: String
        package var httpVersion = ""
        package var cookies: [Pair] = []
        package var headers: [Pair] = []
        package var queryString: [Pair] = []
        package var postData: PostData?
        package var headersSize: Int64 = -1
        package var bodySize: Int64 = -1
    }

    /// The body of a request.
    package struct PostData: Hashable, Codable, Sendable {
        package var mimeType: String
        package var text: String
        package var params: [Pair] = []
        /// `base64` for bytes that are not text, as in ``Content/encoding``.
        package var encoding: String?
        package var comment: String?

        package enum CodingKeys: String, CodingKey {
            case mimeType, text, params, comment
            case encoding = "_encoding"
        }

        package init(mimeType: String, text: String, encoding: String? = nil, comment: String? = nil) {
            self.mimeType = mimeType
            self.text = text
            self.encoding = encoding
            self.comment = comment
        }
    }

    /// A response; one with status 0 if there is none.
    package struct Response: Hashable, Codable, Sendable {
        package var status = 0
        package var statusText = ""
        package var httpVersion = ""
        package var cookies: [Pair] = []
        package var headers: [Pair] = []
        package var content = Content()
        package var redirectURL = ""
        package var headersSize: Int64 = -1
        package var bodySize: Int64 = -1

        package init() {}
    }

    /// The body of a response, after decompression.
    package struct Content: Hashable, Codable, Sendable {
        package var size: Int64 = 0
        package var compression: Int64?
        package var mimeType = ""
        package var text: String?
        package var encoding: String?
        package var comment: String?
        /// Whether only a part of the body was recorded; otherwise `nil`.
        package var isTruncated: Bool?

        package enum CodingKeys: String, CodingKey {
            case size, compression, mimeType, text, encoding, comment
            case isTruncated = "_truncated"
        }

        package init() {}
    }

    /// The phases of an exchange in milliseconds, one after the other; -1 for one that did not take place. TLS is a part
    /// of ``connect``.
    package struct Timings: Hashable, Codable, Sendable {
        package var blocked = -1.0
        package var dns = -1.0
        package var connect = -1.0
        package var send = 0.0
        package var wait = 0.0
        package var receive = 0.0
        package var ssl = -1.0

        package init() {}

        /// The sum of the phases, which is the duration of the exchange.
        package var sum: Double {
            let sum = [blocked, dns, connect, send, wait, receive].reduce(0) { $0 + max(0, $1) }
            return (sum * 1000).rounded() / 1000
        }
    }
}

// MARK: Reading

/// Reads the members of an object over the values that they have by default: archives of other programs lack members that
/// ours always have, or have `null` for them. A program's own, whose names begin with an underscore, may have any type.
private struct Members<Key: CodingKey> {
    private let container: KeyedDecodingContainer<Key>

    init(of decoder: any Decoder) throws {
        container = try decoder.container(keyedBy: Key.self)
    }

    func callAsFunction<Value: Decodable>(_ key: Key, _ value: inout Value) throws {
        do {
            value = try container.decodeIfPresent(Value.self, forKey: key) ?? value
        } catch  where key.stringValue.utf8.first == UInt8(ascii: "_") {}
    }
}

extension HAR.Entry {
    package init(from decoder: any Decoder) throws {
        // An entry that was cut off has none.
        let request = try decoder.container(keyedBy: CodingKeys.self).decode(HAR.Request.self, forKey: .request)
        self.init(startedDateTime: "", request: request, timings: HAR.Timings())
        let read = try Members<CodingKeys>(of: decoder)
        try read(.startedDateTime, &startedDateTime)
        try read(.response, &response)
        try read(.timings, &timings)
        time = timings.sum
        try read(.time, &time)
        try read(.serverIPAddress, &serverIPAddress)
        try read(.connection, &connection)
        try read(.comment, &comment)
        try read(.call, &call)
        try read(.source, &source)
        try read(.error, &error)
        try read(.resourceType, &resourceType)
        try read(.webSocketMessages, &webSocketMessages)
    }
}

extension HAR.Message {
    package init(from decoder: any Decoder) throws {
        self.init(.text(""), isSent: false, at: Date(timeIntervalSince1970: 0))
        let read = try Members<CodingKeys>(of: decoder)
        try read(.type, &type)
        try read(.time, &time)
        try read(.opcode, &opcode)
        try read(.data, &data)
    }
}

extension HAR.Pair {
    package init(from decoder: any Decoder) throws {
        self.init("", "")
        let read = try Members<CodingKeys>(of: decoder)
        try read(.name, &name)
        try read(.value, &value)
    }
}

extension HAR.Request {
    package init(from decoder: any Decoder) throws {
        self.init(method: "", url: "")
        let read = try Members<CodingKeys>(of: decoder)
        try read(.method, &method)
        try read(.url, &url)
        try read(.httpVersion, &httpVersion)
        try read(.cookies, &cookies)
        try read(.headers, &headers)
        try read(.queryString, &queryString)
        try read(.postData, &postData)
        try read(.headersSize, &headersSize)
        try read(.bodySize, &bodySize)
    }
}

extension HAR.PostData {
    package init(from decoder: any Decoder) throws {
        self.init(mimeType: "", text: "")
        let read = try Members<CodingKeys>(of: decoder)
        try read(.mimeType, &mimeType)
        try read(.text, &text)
        try read(.params, &params)
        try read(.encoding, &encoding)
        try read(.comment, &comment)
    }
}

extension HAR.Response {
    package init(from decoder: any Decoder) throws {
        self.init()
        let read = try Members<CodingKeys>(of: decoder)
        try read(.status, &status)
        try read(.statusText, &statusText)
        try read(.httpVersion, &httpVersion)
        try read(.cookies, &cookies)
        try read(.headers, &headers)
        try read(.content, &content)
        try read(.redirectURL, &redirectURL)
        try read(.headersSize, &headersSize)
        try read(.bodySize, &bodySize)
    }
}

extension HAR.Content {
    package init(from decoder: any Decoder) throws {
        self.init()
        let read = try Members<CodingKeys>(of: decoder)
        try read(.size, &size)
        try read(.compression, &compression)
        try read(.mimeType, &mimeType)
        try read(.text, &text)
        try read(.encoding, &encoding)
        try read(.comment, &comment)
        try read(.isTruncated, &isTruncated)
    }
}

extension HAR.Timings {
    package init(from decoder: any Decoder) throws {
        self.init()
        let read = try Members<CodingKeys>(of: decoder)
        try read(.blocked, &blocked)
        try read(.dns, &dns)
        try read(.connect, &connect)
        try read(.send, &send)
        try read(.wait, &wait)
        try read(.receive, &receive)
        try read(.ssl, &ssl)
    }
}

extension HAR.Timings {
    /// Creates the phases of an exchange from its metrics, whose durations are measured from its start. The sum is the
    /// total.
    ///
    /// - Parameters:
    ///   - metrics: The metrics.
    ///   - sent: The time at which the last byte of the request's body was passed on; `nil` if it has none.
    package init(_ metrics: TransferMetrics, sent: Duration? = nil) {
        self.init()
        var last = Duration.zero
        // Each phase ends at a time that is not before the end of the last one, nor after the end of all.
        func phase(until end: Duration) -> Double {
            let end = min(max(end, last), metrics.total)
            defer { last = end }
            return ((end - last) / .microseconds(1)).rounded() / 1000
        }
        blocked = phase(until: metrics.queued)
        if let lookup = metrics.nameLookup { dns = phase(until: lookup) }
        if let tcp = metrics.connect {
            connect = phase(until: tcp)
            if let tls = metrics.tlsHandshake {
                ssl = phase(until: tls)
                connect += ssl
            }
        }
        guard let start = metrics.requestStart else {
            // It ended in the phase after the last one that is known.
            let rest = phase(until: metrics.total)
            if metrics.isConnectionReused || metrics.queued >= metrics.total {
                blocked += rest
            } else if metrics.nameLookup == nil {
                dns = rest
            } else {
                connect = max(0, connect) + rest
                if metrics.connect != nil { ssl = max(0, ssl) + rest }
            }
            return
        }
        blocked += phase(until: start)
        let answered = metrics.firstByte ?? metrics.total
        if let sent { send = phase(until: min(sent, answered)) }
        wait = phase(until: answered)
        receive = phase(until: metrics.total)
    }
}

extension HAR.Request {
    /// Creates the record of a request. The body is added apart.
    package init(_ request: Request) {
        let url = request.url.absoluteString
        self.init(method: request.method.rawValue, url: String(url.unicodeScalars.prefix { $0 != "#" }))
        headers = request.headers.map { HAR.Pair($0.name.rawName, $0.value) }
        cookies = request.headers.filter { $0.name == .cookie }.flatMap { field in
            field.value.unicodeScalars.split(separator: ";").map { HAR.Pair(cookie: Substring($0)) }
        }
        queryString = Self.query(of: self.url)
    }

    /// The names and values of a URL's query, percent-encoded.
    package static func query(of url: String) -> [HAR.Pair] {
        let scalars = url.unicodeScalars.prefix { $0 != "#" }
        guard let mark = scalars.firstIndex(of: "?") else { return [] }
        return scalars[mark...].dropFirst().split(separator: "&").map { HAR.Pair(parameter: $0) }
    }
}

extension HAR.Pair {
    /// Creates a pair from `name=value`, or from a name.
    fileprivate init(parameter scalars: Substring.UnicodeScalarView) {
        let name = scalars.prefix { $0 != "=" }
        self.init(String(name), String(scalars[name.endIndex...].dropFirst()))
    }

    /// Creates a pair from `name=value`, or from a value (RFC 6265bis §5.6).
    fileprivate init(cookie text: Substring) {
        let text = text.trimmingBlanks
        let scalars = text.unicodeScalars[...]
        if scalars.contains("=") { self.init(parameter: scalars) } else { self.init("", text) }
    }
}

extension HAR.Response {
    /// Creates the record of a response. The body is added apart.
    package init(_ head: ResponseHead) {
        status = head.status.code
        statusText = head.status.reasonPhrase
        httpVersion = head.version.rawValue
        headers = head.headers.map { HAR.Pair($0.name.rawName, $0.value) }
        cookies = head.headers[values: .setCookie].map {
            HAR.Pair(cookie: Substring($0.unicodeScalars.prefix { $0 != ";" }))
        }
        redirectURL = head.headers[.location] ?? ""
        content.mimeType = head.headers[.contentType] ?? ""
    }
}

extension Redaction {
    /// Returns an entry of an archive without its secrets.
    package func entry(_ entry: HAR.Entry) -> HAR.Entry {
        guard self != .none else { return entry }
        var entry = entry
        entry.request = request(entry.request)
        entry.response.headers = hidden(entry.response.headers)
        entry.response.cookies = entry.response.cookies.map { HAR.Pair($0.name, Self.mark) }
        entry.response.redirectURL = url(entry.response.redirectURL)
        let content = entry.response.content
        if let text = content.text, content.encoding == nil {
            entry.response.content.text = String(
                decoding: body(Data(text.utf8), contentType: content.mimeType), as: UTF8.self)
        }
        entry.webSocketMessages = entry.webSocketMessages?.map { message in
            var message = message
            if message.opcode == 1 {
                message.data = String(decoding: body(Data(message.data.utf8), contentType: nil), as: UTF8.self)
            }
            return message
        }
        entry.error = entry.error.map(text)
        return entry
    }

    /// Returns a request of an archive without its secrets.
    package func request(_ request: HAR.Request) -> HAR.Request {
        guard self != .none else { return request }
        var request = request
        request.url = url(request.url)
        request.queryString = HAR.Request.query(of: request.url)
        request.headers = hidden(request.headers)
        request.cookies = request.cookies.map { HAR.Pair($0.name, Self.mark) }
        if let post = request.postData, post.encoding == nil {
            let bytes = body(Data(post.text.utf8), contentType: post.mimeType)
            request.postData?.text = String(decoding: bytes, as: UTF8.self)
        }
        return request
    }

    private func hidden(_ pairs: [HAR.Pair]) -> [HAR.Pair] {
        pairs.map { HAR.Pair($0.name, value($0.value, of: $0.name)) }
    }
}
