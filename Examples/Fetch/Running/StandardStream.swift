// SPDX-License-Identifier: MIT

import FoundationEssentials
import Glibc

/// The standard streams, and the other functions of the C library that the program calls.
enum StandardStream: Int32 {
    case input = 0
    case output = 1
    case error = 2

    /// Whether the stream is a terminal.
    var isTerminal: Bool { isatty(rawValue) == 1 }

    /// The size of the terminal; 80 columns and 24 rows if it is unknown.
    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard unsafe ioctl(rawValue, UInt(TIOCGWINSZ), &size) == 0 else { return (80, 24) }
        return (size.ws_col > 0 ? Int(size.ws_col) : 80, size.ws_row > 0 ? Int(size.ws_row) : 24)
    }

    /// Writes all bytes. While the reader is not ready, waits until the task is cancelled.
    func write(_ data: Data) async throws {
        var rest = data[...]
        while !rest.isEmpty {
            while !isWritable {
                try Task.checkCancellation()
                await Task.yield()
            }
            try writePiece(of: &rest)
        }
    }

    /// Writes a message; errors are ignored. A cancelled task does not wait for a reader that is not ready.
    func print(_ text: String) {
        var rest = Data(text.utf8)[...]
        while !rest.isEmpty {
            while !isWritable { if Task.isCancelled { return } }
            do { try writePiece(of: &rest) } catch { return }
        }
    }

    /// Whether a piece can be written without blocking. Waits for it unless the task is cancelled, but not for long,
    /// because the thread waits.
    private var isWritable: Bool {
        var entry = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
        return unsafe poll(&entry, 1, Task.isCancelled ? 0 : 20) > 0
    }

    /// Writes as many bytes as a pipe that is ready takes without blocking (pipe(7)), and removes them.
    private func writePiece(of rest: inout Data) throws(OutputError) {
        let count = unsafe rest.prefix(Int(PIPE_BUF)).withUnsafeBytes { bytes in
            unsafe Glibc.write(rawValue, bytes.baseAddress, bytes.count)
        }
        guard count < 0 else {
            rest = rest.dropFirst(count)
            return
        }
        switch errno {
        case EINTR, EAGAIN: break
        case EPIPE: throw .readerGone
        case let code: throw .system(unsafe String(cString: strerror(code)))
        }
    }

    /// Whether reading would not block.
    var isReadable: Bool {
        var entry = pollfd(fd: rawValue, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, 0) != 0
    }

    /// Reads the available bytes, at most `count`; empty at the end.
    func read(upTo count: Int) throws(OutputError) -> Data {
        var bytes = [UInt8](repeating: 0, count: count)
        while true {
            let count = unsafe Glibc.read(rawValue, &bytes, bytes.count)
            if count >= 0 { return Data(bytes[..<count]) }
            let code = errno
            guard code == EINTR else { throw .system(unsafe String(cString: strerror(code))) }
        }
    }

    /// Makes writing to a closed pipe an error instead of a fatal signal.
    static func ignoreBrokenPipes() {
        _ = signal(SIGPIPE, SIG_IGN)
    }

    /// Ignores a signal, which another mechanism handles.
    static func ignore(_ number: Int32) {
        _ = signal(number, SIG_IGN)
    }
}
