// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import Glibc

/// A file to which the TLS secrets of connections are appended, in NSS format. See SSL_CTX_set_keylog_callback(3).
final class KeyLog: Sendable {
    private let file: FileDescriptor

    /// Opens the file, or creates one that only the current user can read. A pipe must have a reader; neither opening
    /// nor writing one waits, because the loop does both.
    init(path: String) throws(SecurityFailure) {
        do throws(SystemError) {
            file = try FileDescriptor(opening: path, flags: O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, mode: 0o600)
        } catch {
            throw SecurityFailure(failure: .keyLog(path: path))
        }
    }

    /// Appends a line. Write errors are ignored: the log is a debugging aid.
    func append(_ line: String) {
        try? file.writeAll(Data((line + "\n").utf8).bytes)
    }
}
