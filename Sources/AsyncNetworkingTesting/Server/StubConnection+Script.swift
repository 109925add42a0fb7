// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

extension StubConnection {
    /// Performs an action; returns whether the connection can be used for another request.
    mutating func perform(_ action: Script.Action, meeting expectation: Script.Expectation) throws(End) -> Bool {
        switch action {
        case .readBody(let limit):
            try readBody(upTo: limit, meeting: expectation)
        case .informational(let status, let headers):
            try write(ReplyEncoder.head(version: "HTTP/1.1", status: status, reason: nil, headers: headers)[...])
        case .reply(let reply):
            return try send(reply, method: request.method)
        case .respond(let makeReply):
            return try send(makeReply(request), method: request.method)
        case .send(let data):
            try write(Array(data)[...])
        case .generate(let count):
            try ReplyEncoder.forEachPiece(of: .generated(count), size: GeneratedBytes.period) { piece throws(End) in
                try write(piece)
            }
        case .delay(let duration):
            try pause(duration)
        case .wait(let gate):
            if socket.waitForHangUp(nil, or: gate.descriptor.number) { throw .peerClosed }
        case .pace(let pace):
            meter.setPace(pace)
        case .disconnect(let bytes, let ending):
            meter.setCut(after: bytes, by: ending)
        case .end(let ending):
            throw .byScript(ending)
        case .hang:
            try pause(nil)
        case .acceptWebSocket(let headers):
            try acceptWebSocket(headers: headers)
            return false
        case .message(let message):
            try write(message.frame.encoded(mask: nil)[...])
        case .echoMessages(let limit):
            try echoMessages(limit)
        case .closeWebSocket(let code, let reason):
            try closeWebSocket(WebSocketClosure(code: code, reason: reason))
        }
        return true
    }

    /// Sends a response; returns whether the connection can be used for another request.
    @discardableResult
    mutating func send(_ reply: Reply, method: String) throws(End) -> Bool {
        let encoder = ReplyEncoder(reply, method: method)
        guard encoder.sendsBody else {
            try write(encoder.head[...])
            return !encoder.mustClose
        }
        // A small response is sent with a single call, in one packet.
        if reply.pace == nil, case .bytes(let data) = reply.body, data.count <= encoder.pieceSize {
            try write((encoder.head + (data.isEmpty ? [] : encoder.frame(Array(data)[...])) + encoder.end)[...])
            return !encoder.mustClose
        }
        try write(encoder.head[...])
        if let pace = reply.pace { meter.setPace(pace) }
        try encoder.forEachPiece { piece throws(End) in try write(encoder.frame(piece)[...]) }
        try write(encoder.end[...])
        if reply.pace != nil { meter.setPace(nil) }
        return !encoder.mustClose
    }

    /// Sends bytes according to the meter.
    mutating func write(_ bytes: ArraySlice<UInt8>) throws(End) {
        var rest = bytes
        while !rest.isEmpty {
            switch meter.next(rest.count) {
            case .send(let count):
                do {
                    try socket.send(rest.prefix(count))
                } catch {
                    throw .peerClosed
                }
                rest = rest.dropFirst(count)
            case .wait(let duration):
                try pause(duration)
            case .end(let ending):
                throw .byScript(ending)
            }
        }
    }

    /// Waits for a duration, or without limit if it is `nil`; throws if the client closes the connection meanwhile.
    mutating func pause(_ duration: Duration?) throws(End) {
        guard duration != .zero else { return }
        if socket.waitForHangUp(duration) { throw .peerClosed }
    }
}
