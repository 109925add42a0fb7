// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl

// Pauses of responses over HTTP/1.1 whose readers have no room. Over HTTP/2 and HTTP/3, windows limit what arrives.
//
// | libcurl | reads during a pause | remedy |
// |---|---|---|
// | 8.5 | always, and drops what it holds at the end of the connection | input is held back from it |
// | 8.9 to 8.19 | as long as it may send | sending pauses while it holds much |
// | others | never | |

extension Transfer {
    /// Makes libcurl offer the bytes again when the transfer is resumed. See CURLOPT_WRITEFUNCTION(3),
    /// ``CurlDefects/readPauses`` and ``CurlDefects/sendingReads``.
    func pauseReceiving() -> Int {
        state.receiving.pause()
        if let socket = usedSocket, !state.parser.framing.isMultiplexed {
            if loop.context.defects.contains(.readPauses) {
                loop.notePaused(self, on: socket, holding: .readable)
            } else if readsWhileSending {
                loop.notePaused(self, on: socket, holding: [])
            }
        }
        return CCURL_WRITE_PAUSE
    }

    /// Whether libcurl reads the response during a pause. See ``CurlDefects/sendingReads``.
    private var readsWhileSending: Bool {
        exchange.sendsBody && loop.context.defects.contains(.sendingReads) && !state.parser.framing.isMultiplexed
    }

    /// Whether libcurl holds so much of the response that it must not send.
    var holdsMuch: Bool {
        guard readsWhileSending else { return false }
        let taken = state.receiving.count + state.receiving.framingCount
        return handle.offset(CURLINFO_SIZE_DOWNLOAD_T) - Int64(taken) > Self.maximumHeldSize
    }

    /// Whether libcurl may neither send nor receive.
    var isOverfull: Bool { state.receiving.isPaused && holdsMuch }

    /// The number of bytes that libcurl may hold. It reads some 160 KB at a time.
    private static let maximumHeldSize: Int64 = 1 << 20

    /// Whether all bytes of the response were received that its head or its last chunk announces, although libcurl waits for
    /// more. See ``CurlDefects/readPauses``.
    var isEndUnseen: Bool {
        guard loop.context.defects.contains(.readPauses), state.parser.isComplete else { return false }
        return state.receiving.chunks?.isOver ?? (state.parser.framing.contentLength == Int64(state.receiving.count))
    }

    /// Notes that this transfer does not pause any more on the socket in use.
    func endPause() {
        if let socket = usedSocket, loop.paused[socket]?.transfer === self { loop.readAgain(socket) }
    }
}

extension CurlEngine {
    /// Returns a ready socket without the events that are held back; `nil` if none is left. The end of the connection waits
    /// behind what is not read.
    func withoutHeldInput(_ ready: ReadyDescriptor) -> ReadyDescriptor? {
        guard !state.paused.isEmpty, let transfer = state.paused[ready.number]?.transfer,
            context.defects.contains(.readPauses)
        else { return ready }
        guard ready.readiness.contains(.writable) else {
            state.notePaused(transfer, on: ready.number, holding: .readable)
            return nil
        }
        return ReadyDescriptor(number: ready.number, readiness: .writable)
    }

    /// Pauses the sending of transfers of whose responses libcurl holds much, until their readers have made room. The bytes
    /// that it has buffered for sending must not wake it.
    func pauseOverfull() {
        guard !state.paused.isEmpty else { return }
        for (socket, pause) in state.paused where pause.held.isEmpty && pause.transfer.isOverfull {
            _ = pause.transfer.handle.resume(receiving: false, sending: false)
            state.notePaused(pause.transfer, on: socket, holding: [.readable, .writable])
        }
    }
}
