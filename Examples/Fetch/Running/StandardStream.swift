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

    /// Writes all bytes; blocks while the reader is not ready.
    func write(_ data: Data) throws(OutputError) {
        var written = 0
        while written < data.count {
            let count = unsafe data[(data.startIndex + written)...].withUnsafeBytes { bytes in
                unsafe Glibc.write(rawValue, bytes.baseAddress, bytes.count)
            }
            if count >= 0 {
                written += count
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: try wait(for: Int16(POLLOUT))
            case EPIPE: throw .readerGone
            case let code: throw .system(unsafe String(cString: strerror(code)))
            }
        }
    }

    /// Writes a message; errors are ignored.
    func print(_ text: String) {
        try? write(Data(text.utf8))
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

    private func wait(for events: Int16) throws(OutputError) {
        var entry = pollfd(fd: rawValue, events: events, revents: 0)
        _ = unsafe poll(&entry, 1, -1)
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
