// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import Testing

@Suite struct SystemErrorTests {
    @Test(arguments: [
        (SystemError(call: "open", code: ENOENT), "open: No such file or directory (errno 2)"),
        (SystemError(call: "connect", code: ECONNREFUSED), "connect: Connection refused (errno 111)"),
        (SystemError(call: "", code: 0), ": Success (errno 0)"),
        (SystemError(call: "read", code: 9999), "read: unknown error (errno 9999)"),
        (SystemError(call: "read", code: -1), "read: unknown error (errno -1)"),
        (SystemError(call: "read", code: .min), "read: unknown error (errno -2147483648)"),
    ])
    func `the description consists of the call, the system's message and the errno`(error: SystemError, text: String) {
        #expect(error.description == text)
    }

    @Test func `last uses the errno of the calling thread`() {
        errno = EAGAIN
        #expect(SystemError.last("read") == SystemError(call: "read", code: EAGAIN))
    }

    @Test func `errors are equal if call and code are equal`() {
        #expect(SystemError(call: "read", code: 1) != SystemError(call: "write", code: 1))
        #expect(SystemError(call: "read", code: 1) != SystemError(call: "read", code: 2))
    }
}
