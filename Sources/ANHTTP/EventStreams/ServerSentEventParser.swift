// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// A parser of event streams (WHATWG HTML, “Interpreting an event stream”).
///
/// The bytes may be split anywhere. Invalid UTF-8 is replaced by U+FFFD; this is done for each field, which gives the
/// same text as for the whole stream, because CR, LF and colons are not part of longer sequences.
package struct ServerSentEventParser: BodyParser {
    private var splitter: LineSplitter
    private let maximumEventSize: Int
    /// The lines of data, joined by LF; `nil` without one.
    private var data: String?
    /// The event type buffer.
    private var type = ""
    /// The last event ID buffer. It applies when the event ends.
    private var id: String
    private var isFirstLine = true
    /// The settings of the session that receives the events.
    package var session = EventSession()

    /// The ID of the last complete event, for `Last-Event-ID`; empty for none.
    package private(set) var lastEventID: String
    /// The time to wait before reconnecting that the server has set; `nil` if it has set none.
    package private(set) var reconnectionTime: Duration?

    /// Creates a parser for a new stream.
    ///
    /// - Parameters:
    ///   - maximumEventSize: The maximum size of the data of an event, and of a line, in bytes.
    ///   - lastEventID: The last event ID of an earlier stream that this one continues.
    package init(maximumEventSize: Int, lastEventID: String = "") {
        self.maximumEventSize = max(0, maximumEventSize)
        // Longer than the limit by the name of a field, so that data is limited by its own size.
        splitter = LineSplitter(
            maximumLength: min(self.maximumEventSize, .max - 8) + 8, namedLimit: self.maximumEventSize)
        self.lastEventID = lastEventID
        id = lastEventID
    }

    /// Adds a chunk of bytes.
    package mutating func append(_ chunk: Data) {
        splitter.append(chunk)
    }

    /// Returns the next complete event; `nil` if more bytes are needed. An event that is incomplete at the end of the
    /// stream is discarded, as the standard requires.
    package mutating func next() throws(TransportError) -> ServerSentEvent? {
        while var line = try splitter.nextRange() {
            if isFirstLine {
                isFirstLine = false
                if splitter.bytes[line].starts(with: LineSplitter.mark) {
                    line = line.lowerBound + LineSplitter.mark.count..<line.upperBound
                }
            }
            if line.isEmpty {
                if let event = dispatch() { return event }
            } else {
                try interpret(line)
            }
        }
        return nil
    }

    /// Returns `nil`: an event that is incomplete at the end is discarded.
    package func finish() -> ServerSentEvent? { nil }

    /// Interprets a line that is not empty.
    private mutating func interpret(_ line: Range<Int>) throws(TransportError) {
        let (field, value) = Self.field(in: splitter.bytes.span, line)
        switch field {
        case .data:
            try append(text(value))
        case .event:
            type = text(value)
        case .id:
            if !splitter.bytes[value].contains(0) { id = text(value) }
        case .retry:
            setReconnectionTime(text(value))
        case nil:
            break
        }
    }

    /// Adds a line of data.
    private mutating func append(_ line: String) throws(TransportError) {
        guard line.utf8.count <= maximumEventSize - (data.map { $0.utf8.count + 1 } ?? 0) else {
            throw TransportError(.responseTooLarge(.body(limit: maximumEventSize)))
        }
        if data == nil {
            data = line
        } else {
            data?.append("\n")
            data?.append(line)
        }
    }

    private func text(_ range: Range<Int>) -> String {
        String(decoding: splitter.bytes[range], as: UTF8.self)
    }

    /// Sets the reconnection time to a number of milliseconds; ignores a value that is empty or has other characters
    /// than digits. A number that is too large counts as the largest possible one.
    private mutating func setReconnectionTime(_ value: String) {
        if let milliseconds = Int64(clampingDigits: value) { reconnectionTime = .milliseconds(milliseconds) }
    }

    /// Ends the current event. Returns it unless it has no data.
    private mutating func dispatch() -> ServerSentEvent? {
        lastEventID = id
        let type = type
        self.type = ""
        guard let data = data.take() else { return nil }
        var event = ServerSentEvent(type: type.isEmpty ? "message" : type, data: data, id: id)
        event.session = session
        return event
    }

    /// Returns the field of a line and the range of its value; `nil` for a comment, whose name is empty, and for an
    /// unknown field.
    private static func field(in bytes: borrowing Span<UInt8>, _ line: Range<Int>) -> (Field?, Range<Int>) {
        var end = line.lowerBound
        // The name as a number after a digit 1, so that no name is equal to one with NUL before it.
        var name: UInt64 = 1
        while end < line.upperBound, bytes[end] != UInt8(ascii: ":") {
            name = name << 8 | UInt64(bytes[end])
            end += 1
        }
        let field = end - line.lowerBound <= 5 ? Field(rawValue: name) : nil
        var start = min(end + 1, line.upperBound)
        if start < line.upperBound, bytes[start] == UInt8(ascii: " ") { start += 1 }
        return (field, start..<line.upperBound)
    }

    /// The known fields. The raw values are the bytes of their names after a digit 1.
    private enum Field: UInt64 {
        case data = 0x1_6461_7461
        case event = 0x165_7665_6E74
        case id = 0x1_6964
        case retry = 0x172_6574_7279
    }
}
