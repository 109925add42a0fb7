// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import Glibc

/// A file to which the secrets of connections are added, in the format of NSS. See SSL_CTX_set_keylog_callback(3).
final class KeyLog: Sendable {
    private let file: FileDescriptor

    /// Opens the file, or makes one that only this user can read.
    init(path: String) throws(SecurityFailure) {
        do throws(SystemError) {
            file = try FileDescriptor(opening: path, flags: O_WRONLY | O_CREAT | O_APPEND, mode: 0o600)
        } catch {
            throw SecurityFailure(failure: .keyLog(path: path))
        }
    }

    /// Adds a line. One that cannot be written is lost: it serves a person who looks on, not the program.
    func append(_ line: String) {
        try? file.writeAll(Data((line + "\n").utf8).bytes)
    }
}
