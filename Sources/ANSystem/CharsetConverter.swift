// SPDX-License-Identifier: MIT

import Glibc

/// A converter from one charset to UTF-8, which uses glibc's iconv(3).
@safe public struct CharsetConverter: ~Copyable {
    private let descriptor: iconv_t

    /// Opens a converter.
    ///
    /// - Parameter charset: The name of the charset, as printed by `iconv --list` but without the slashes at its end,
    ///   regardless of case, with 1 to 40 letters, digits, hyphens, underscores and colons in ASCII. Other names are
    ///   treated as unknown, because the slashes of `//IGNORE`, for example, have a special meaning for glibc.
    /// - Throws: `EINVAL` if the charset is unknown or its conversion module is not installed; otherwise the error of
    ///   iconv_open(3).
    public init(from charset: String) throws(SystemError) {
        let isPlain = charset.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ":"):
                true
            default: false
            }
        }
        guard isPlain, 1...40 ~= charset.utf8.count else { throw SystemError(call: "iconv_open", code: EINVAL) }
        // iconv_open(3) returns -1 on failure.
        guard let descriptor = unsafe iconv_open("UTF-8", charset), Int(bitPattern: descriptor) != -1 else {
            throw .last("iconv_open")
        }
        unsafe self.descriptor = descriptor
    }

    deinit {
        unsafe iconv_close(descriptor)
    }

    /// Returns a complete text converted to UTF-8. Each call starts in the initial shift state of the charset.
    ///
    /// - Parameter bytes: The text in the charset, from its first byte to its last one; empty for no text.
    /// - Throws: `EILSEQ` if the bytes are invalid in the charset, `EINVAL` if the last character is cut off. The
    ///   converter can be used again after an error.
    public mutating func utf8(of bytes: RawSpan) throws(SystemError) -> [UInt8] {
        unsafe iconv(descriptor, nil, nil, nil, nil)
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: min(max(bytes.byteCount, 64), 64 << 10))
        var offset = 0
        while true {
            let step = try convert(bytes.extracting(droppingFirst: offset), into: &piece)
            text += piece[..<step.written]
            offset += step.read
            guard step.code != 0 else { return text + (try remainder()) }
            // A call without progress would be repeated endlessly.
            guard step.code == E2BIG, step.read > 0 || step.written > 0 else {
                throw SystemError(call: "iconv", code: step.code == E2BIG ? EILSEQ : step.code)
            }
        }
    }

    /// Returns the output that iconv held back because the next character could have changed it, as in Windows-1255.
    private func remainder() throws(SystemError) -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: 64)
        let (written, code): (Int, Int32) = unsafe piece.withUnsafeMutableBytes { output in
            var free = unsafe output.assumingMemoryBound(to: CChar.self).baseAddress
            var room = output.count
            let result = unsafe iconv(descriptor, nil, nil, &free, &room)
            return (output.count - room, result == -1 ? errno : 0)
        }
        guard code == 0 else { throw SystemError(call: "iconv", code: code) }
        return Array(piece[..<written])
    }

    /// Makes one call of iconv(3).
    ///
    /// - Returns: The numbers of bytes read and written, and `errno` if the conversion stopped early, otherwise 0.
    private func convert(
        _ bytes: RawSpan, into piece: inout [UInt8]
    ) throws(SystemError) -> (read: Int, written: Int, code: Int32) {
        unsafe bytes.withUnsafeBytes { input in
            unsafe piece.withUnsafeMutableBytes { output in
                // iconv(3) declares its input as mutable but does not write to it.
                var next = unsafe UnsafeMutablePointer(mutating: input.assumingMemoryBound(to: CChar.self).baseAddress)
                var left = input.count
                var free = unsafe output.assumingMemoryBound(to: CChar.self).baseAddress
                var room = output.count
                // An empty input may have a null pointer, which iconv(3) takes as a request to reset its state.
                guard left > 0 else { return (0, 0, 0) }
                let result = unsafe iconv(descriptor, &next, &left, &free, &room)
                return (input.count - left, output.count - room, result == -1 ? errno : 0)
            }
        }
    }
}
