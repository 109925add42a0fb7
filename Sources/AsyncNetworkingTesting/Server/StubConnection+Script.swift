// SPDX-License-Identifier: MIT

extension StubConnection {
    /// Does one action; false when the connection cannot be used for another request.
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
            try sendPieces(of: .generated(count), size: GeneratedBytes.period) { $0 }
        case .delay(let duration):
            try pause(duration)
        case .pace(let pace):
            meter.setPace(pace)
        case .cut(let bytes, let ending):
            meter.setCut(after: bytes, by: ending)
        case .end(let ending):
            throw .byScript(ending)
        case .hang:
            try pause(nil)
        }
        return true
    }

    /// Sends a response; false when the connection must be closed after it.
    @discardableResult
    mutating func send(_ reply: Reply, method: String) throws(End) -> Bool {
        let encoder = ReplyEncoder(reply, method: method)
        guard encoder.sendsBody else {
            try write(encoder.head[...])
            return !encoder.mustClose
        }
        // A small response leaves in one piece: one call, one packet.
        if reply.pace == nil, case .bytes(let data) = reply.body, data.count <= encoder.pieceSize {
            try write((encoder.head + (data.isEmpty ? [] : encoder.frame(Array(data)[...])) + encoder.end)[...])
            return !encoder.mustClose
        }
        try write(encoder.head[...])
        if let pace = reply.pace { meter.setPace(pace) }
        try sendPieces(of: reply.body, size: encoder.pieceSize) { encoder.frame($0)[...] }
        try write(encoder.end[...])
        if reply.pace != nil { meter.setPace(nil) }
        return !encoder.mustClose
    }

    private mutating func sendPieces(
        of body: Reply.Body, size: Int, framed frame: (ArraySlice<UInt8>) -> ArraySlice<UInt8>
    ) throws(End) {
        switch body {
        case .bytes(let data):
            var rest = Array(data)[...]
            while !rest.isEmpty {
                try write(frame(rest.prefix(size)))
                rest = rest.dropFirst(size)
            }
        case .generated(let count):
            var sent: Int64 = 0
            while sent < count {
                let piece = GeneratedBytes.slice(from: sent, atMost: min(Int64(size), count - sent))
                try write(frame(piece))
                sent += Int64(piece.count)
            }
        }
    }

    /// Sends bytes as the meter allows.
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

    /// Waits, for ever if nil.
    mutating func pause(_ duration: Duration?) throws(End) {
        guard duration != .zero else { return }
        if socket.waitForHangUp(duration) { throw .peerClosed }
    }
}
