// SPDX-License-Identifier: MIT

import Glibc

/// Converts text of one charset to UTF-8 by glibc's iconv(3).
@safe public struct CharsetConverter: ~Copyable {
    private let descriptor: iconv_t

    /// Opens a converter.
    ///
    /// - Parameter charset: A name as `iconv --list` prints it. Names with characters that glibc gives a meaning of its own,
    ///   such as the slashes of `//IGNORE`, are unknown.
    /// - Throws: `EINVAL` for a charset that is not known, or whose module is not installed.
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
        // It returns -1 for a failure.
        guard let descriptor = unsafe iconv_open("UTF-8", charset), Int(bitPattern: descriptor) != -1 else {
            throw .last("iconv_open")
        }
        unsafe self.descriptor = descriptor
    }

    deinit {
        unsafe iconv_close(descriptor)
    }

    /// The whole of a text as UTF-8.
    ///
    /// - Throws: `EILSEQ` for bytes that are invalid in the charset, `EINVAL` for a character that is cut off at the end.
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
            // Without progress the same call would follow for ever.
            guard step.code == E2BIG, step.read > 0 || step.written > 0 else {
                throw SystemError(call: "iconv", code: step.code == E2BIG ? EILSEQ : step.code)
            }
        }
    }

    /// What was held back in case that the next character changes it, as in Windows-1255.
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

    /// One call: how many bytes were read and written, and `errno` where it did not come to the end.
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
                // Without input there is nothing to do, and a null pointer would mean a reset.
                guard left > 0 else { return (0, 0, 0) }
                let result = unsafe iconv(descriptor, &next, &left, &free, &room)
                return (input.count - left, output.count - room, result == -1 ? errno : 0)
            }
        }
    }
}
