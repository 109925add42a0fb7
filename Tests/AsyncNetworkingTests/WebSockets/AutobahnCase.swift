// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

/// A case of the Autobahn test suite for clients (github.com/crossbario/autobahn-testsuite): the frames that a server
/// sends, and the behaviour of a client that sends all messages back.
struct AutobahnCase: Sendable, CustomTestStringConvertible {
    /// The number of the case in Autobahn's reports.
    let number: String
    /// The bytes of the frames.
    let frames: [[UInt8]]
    /// The messages that the client receives.
    var messages: [WebSocketMessage]
    /// The payloads of the pongs that the client sends.
    var pongs: [[UInt8]]
    var chop: Chop
    let ending: Ending

    /// The pieces in which the frames are sent.
    enum Chop: Sendable {
        case whole
        case frames
        case octets(Int)
    }

    /// The end of the connection.
    enum Ending: Sendable {
        /// The server closes the connection with code 1000 after all messages have come back.
        case afterEcho
        /// The client closes the connection with a code because of an error.
        case failure(UInt16)
        /// A frame closes the connection, and the client's close frame has a code; `nil` for none.
        case closed(UInt16?)
    }

    init(
        _ number: String, _ frames: [UInt8]..., messages: [WebSocketMessage] = [], pongs: [[UInt8]] = [],
        chop: Chop = .whole, ending: Ending = .afterEcho
    ) {
        self.init(number, frames, messages: messages, pongs: pongs, chop: chop, ending: ending)
    }

    init(
        _ number: String, _ frames: [[UInt8]], messages: [WebSocketMessage] = [], pongs: [[UInt8]] = [],
        chop: Chop = .whole, ending: Ending = .afterEcho
    ) {
        self.number = number
        self.frames = frames
        self.messages = messages
        self.pongs = pongs
        self.chop = chop
        self.ending = ending
    }

    var testDescription: String { number }
}

extension AutobahnCase {
    /// The observable behaviour of the client.
    struct Outcome: Equatable {
        /// The received messages, followed by those that the server sent back.
        var messages: [WebSocketMessage]
        var pongs: [[UInt8]]
        /// The code of each close frame that the client sent.
        var codes: [UInt16?]
        /// The error of the program; `nil` if the connection was closed normally.
        var failure: Failure?

        enum Failure: Equatable {
            case invalid
            case closed(UInt16?)
            case other(TransportError.Reason)
        }
    }

    /// The required behaviour.
    var expected: Outcome {
        switch ending {
        case .afterEcho: Outcome(messages: messages + messages, pongs: pongs, codes: [1000])
        case .failure(let code): Outcome(messages: messages, pongs: pongs, codes: [code], failure: .invalid)
        case .closed(let code):
            Outcome(
                messages: messages, pongs: pongs, codes: [code],
                failure: code == nil || code == 1000 || code == 1001 ? nil : .closed(code))
        }
    }

    /// Plays the case with a server and a client.
    func play() async throws -> Outcome {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket()] + actions))
            var outcome = Outcome(messages: [], pongs: [], codes: [])
            let session = SessionManager(for: server) { $0.timeouts.idle = nil }
            var options = WebSocketOptions()
            options.pingInterval = nil
            do {
                try await session.withWebSocket(Request(url: server.url()), options: options) { socket in
                    for try await message in socket {
                        outcome.messages.append(message)
                        if outcome.messages.count > 2 * messages.count { break }
                        guard case .afterEcho = ending, outcome.messages.count <= messages.count else { continue }
                        try await socket.send(message)
                    }
                }
            } catch let error as SessionError {
                outcome.failure = Outcome.Failure(try #require(error.reason))
            }
            let activity = try await server.activity { $0.openConnections == 0 }
            outcome.pongs = activity.webSocketControlFrames.filter { $0.opcode == .pong }.map(\.payload)
            outcome.codes = activity.webSocketClosures.map(\.code)
            return outcome
        }
    }

    private var actions: [Script.Action] {
        let sending: [Script.Action] =
            switch chop {
            case .whole: [.send(Data(frames.flatMap(\.self)))]
            case .frames: frames.map { .send(Data($0)) }
            case .octets(let count):
                [
                    .pace(Script.Pace(bytes: count, every: .zero)), .send(Data(frames.flatMap(\.self))),
                    .pace(Script.Pace(bytes: .max, every: .zero)),
                ]
            }
        return switch ending {
        case .afterEcho: sending + [.echoMessages(messages.count), .closeWebSocket(code: 1000)]
        // Text is checked when the program reads it, possibly after a close frame.
        case .failure(1007), .closed: sending + [.echoMessages()]
        // Ends the connection even if the client does not.
        case .failure: sending + [.closeWebSocket(code: 1000)]
        }
    }
}

extension AutobahnCase.Outcome.Failure {
    init(_ reason: TransportError.Reason) {
        self =
            switch reason {
            case .invalidResponse: .invalid
            case .webSocketClosed(let closure): .closed(closure?.code)
            default: .other(reason)
            }
    }
}

extension [UInt8] {
    /// Returns a frame of a server (RFC 6455 §5.2).
    ///
    /// - Parameters:
    ///   - first: The first byte: FIN (0x80), the reserved bits (0x70) and the opcode.
    ///   - payload: The payload.
    static func frame(_ first: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
        let size = payload.count
        let length: [UInt8] =
            switch size {
            case ..<126: [UInt8(size)]
            case ..<65_536: [126, UInt8(size >> 8), UInt8(size & 0xFF)]
            default: [127] + (0..<8).map { UInt8(truncatingIfNeeded: size >> (56 - 8 * $0)) }
            }
        return [first] + length + payload
    }

    /// Returns a frame of a server with a text in UTF-8.
    static func frame(_ first: UInt8, _ text: String) -> [UInt8] {
        frame(first, Array(text.utf8))
    }

    /// Returns a close frame.
    static func close(_ code: UInt16, reason: [UInt8] = []) -> [UInt8] {
        frame(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason)
    }
}

extension [[UInt8]] {
    /// Returns the frames of a message, each with at most `size` bytes of the payload.
    ///
    /// - Parameter first: The first byte of the first frame, without FIN.
    static func fragments(_ first: UInt8, _ payload: [UInt8], size: Int) -> [[UInt8]] {
        let starts = [Int](stride(from: 0, to: Swift.max(1, payload.count), by: size))
        return starts.map { start in
            let piece = [UInt8](payload[start..<Swift.min(start + size, payload.count)])
            return .frame((start == 0 ? first : 0x00) | (start == starts.last ? 0x80 : 0x00), piece)
        }
    }
}
