// SPDX-License-Identifier: MIT

import ANSystem

/// The responses on an HTTP/2 connection that libcurl may lose: those to requests with bodies, as far as libcurl has not
/// handed them on.
///
/// No version hands on the trailers of a response while the body of its request is open. libcurl 7.88 discards what it reads together with a reset of the stream, with which servers reject the rest of a
/// request's body (RFC 9113 §8.1). Versions 8.10 to 8.12 do not notice that nghttp2 has given up a connection, because a
/// header block is invalid. With 8.14, neither happens.
package struct HTTP2Answers: ~Copyable {
    /// A response.
    package struct Answer {
        /// The fields of the final head, including `:status`; `nil` if it was not received or is too large.
        package fileprivate(set) var head: [(name: String, value: String)]?
        /// The trailers; empty if there are none, or they are too large.
        package fileprivate(set) var trailers: [(name: String, value: String)] = []
        /// The latest bytes of the body, at most 64 KiB; all that libcurl has not handed on are among them.
        package fileprivate(set) var body: [UInt8] = []
        /// Whether the response must not be used (RFC 9113 §8.1.1): nghttp2 refuses it.
        package fileprivate(set) var isMalformed = false

        /// Whether the final head was received, also if it is too large to be kept.
        private var hasHead = false

        /// Takes a header block: an interim head, the final one, or the trailers.
        ///
        /// - Parameter isKept: Whether the fields are all of them, and not only the first ones.
        fileprivate mutating func take(_ fields: [(name: String, value: String)], isKept: Bool) {
            let status = fields.first.flatMap { $0.name == ":status" ? $0.value : nil }
            let rest = status == nil ? fields[...] : fields.dropFirst()
            guard rest.allSatisfy(Self.isPermitted), (status == nil) == hasHead else {
                isMalformed = true
                return
            }
            if status == nil {
                if isKept { trailers = fields }
            } else if status?.hasPrefix("1") == false {
                hasHead = true
                if isKept { head = fields }
            }
        }

        /// Whether a field may follow the status, or be a trailer (RFC 9113 §8.2).
        private static func isPermitted(_ name: String, _ value: String) -> Bool {
            guard name != "te" else { return value.lowercased() == "trailers" }
            return !connectionFields.contains(name) && !name.isEmpty
                && !name.utf8.contains {
                    $0 == UInt8(ascii: ":") || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
                }
        }

        private static let connectionFields: Set<String> = [
            "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
        ]
    }

    private var answers: [UInt32: Answer] = [:]
    /// The decoder of all header blocks, which depend on one another; `nil` if libnghttp2 is missing or a block was
    /// invalid.
    private var decoder = try? HeaderBlockDecoder()
    /// The fields of the current header block, and their total size in bytes.
    private var fields: [(name: String, value: String)] = []
    private var fieldsSize = 0
    /// Whether a header block was invalid, so that no stream can continue (RFC 9113 §4.3).
    package private(set) var isInvalid = false

    /// Creates the answers of a new connection.
    package init() {}

    /// The maximum size of a head in bytes. nghttp2 rejects larger ones.
    private static let maximumHeadSize = 1 << 16
    /// The maximum number of bytes of a body that are kept.
    private static let maximumBodySize = 1 << 16

    /// Returns the response on a stream; `nil` if it is not kept.
    package subscript(stream: UInt32) -> Answer? { answers[stream] }

    /// Starts keeping the response on a stream.
    package mutating func open(_ stream: UInt32) {
        answers[stream] = Answer()
    }

    /// Stops keeping the response on a stream.
    package mutating func close(_ stream: UInt32) {
        answers[stream] = nil
    }

    /// Discards the bytes that libcurl has handed on, before a new record is read.
    ///
    /// - Parameter undelivered: Returns the number of bytes of a stream's body that libcurl has not handed on. It may have
    ///   read them for a stream other than the one that it works on.
    mutating func beginRecord(undelivered: (_ stream: UInt32) -> Int) {
        // A loop over the keys would copy the dictionary at the first change.
        var index = answers.startIndex
        while index != answers.endIndex {
            answers.values[index].keep(undelivered(answers[index].key))
            answers.formIndex(after: &index)
        }
    }

    /// Receives part of the content of a frame.
    package mutating func receive(_ content: HTTP2FrameScanner.Content, _ stream: UInt32, _ bytes: Span<UInt8>) {
        switch content {
        case .headerBlock: decode(bytes, isFinal: false, on: stream)
        case .body:
            unsafe bytes.withUnsafeBufferPointer { unsafe answers[stream]?.body.append(contentsOf: $0) }
            // Not for each frame, which may have one byte.
            if let size = answers[stream]?.body.count, size >= 2 * Self.maximumBodySize {
                answers[stream]?.keep(Self.maximumBodySize)
            }
        }
    }

    /// Ends the header block of a stream.
    package mutating func endHeaders(_ stream: UInt32) {
        decode([UInt8]().span, isFinal: true, on: stream)
        if decoder != nil { answers[stream]?.take(fields, isKept: fieldsSize <= Self.maximumHeadSize) }
        fields.removeAll(keepingCapacity: true)
        fieldsSize = 0
    }

    private mutating func decode(_ fragment: Span<UInt8>, isFinal: Bool, on stream: UInt32) {
        let isKept = answers[stream] != nil
        do throws(SystemError) {
            unsafe try decoder?.decode(fragment, isFinal: isFinal) { name, value in
                guard isKept else { return }
                fieldsSize += name.count + value.count
                guard fieldsSize <= Self.maximumHeadSize else { return }
                unsafe fields.append((String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
            }
        } catch {
            decoder = nil
            isInvalid = true
        }
    }
}

extension HTTP2Answers.Answer {
    /// Keeps the latest bytes of the body.
    fileprivate mutating func keep(_ count: Int) {
        if body.count > count { body.removeFirst(body.count - max(0, count)) }
    }
}
