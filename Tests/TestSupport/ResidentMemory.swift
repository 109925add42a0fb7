// SPDX-License-Identifier: MIT

import ANSystem
import CTestSupport
import Glibc

/// Returns the resident memory of this process in kilobytes. See proc(5), `/proc/self/statm`.
package func residentKilobytes() throws -> Int {
    let file = try FileDescriptor(opening: "/proc/self/statm", flags: O_RDONLY)
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(file.number, $0.baseAddress, $0.count) }
    let fields = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
    guard fields.count > 1, let pages = Int(fields[1]) else { throw SystemError(call: "read", code: EINVAL) }
    return pages * Int(getpagesize()) / 1024
}

/// Returns the number of bytes that the heap of this process has allocated. See mallinfo(3).
package func allocatedBytes() -> Int {
    Int(mallinfo2().uordblks)
}

/// Whether a sanitizer is part of this process, which keeps freed memory.
package var isSanitized: Bool {
    unsafe dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}
