// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

/// Text files that only their owner can read.
enum PrivateTextFile {
    /// Replaces a file atomically by one with mode 0600.
    ///
    /// - Throws: ``SessionError/file(_:)``
    static func write(_ text: String, to path: String) throws(SessionError) {
        do throws(SystemError) {
            var file = try AtomicFile(destination: path, mode: 0o600)
            try file.write(Data(text.utf8).bytes)
            try file.commit()
        } catch {
            throw SessionError.file(path, error)
        }
    }

    /// Replaces a file by a title and one line for each value.
    ///
    /// - Throws: ``SessionError/file(_:)``
    static func write(_ title: String, _ lines: [String], to path: String) throws(SessionError) {
        try write(([title] + lines).map { $0 + "\n" }.joined(), to: path)
    }

    /// Returns the values that `parse` returns for the lines of a file; none if there is no such file.
    ///
    /// - Throws: ``SessionError/file(_:)``
    static func values<Value>(in path: String, _ parse: (Substring) -> Value?) throws(SessionError) -> [Value] {
        try read(path)?.split(whereSeparator: \.isNewline).compactMap(parse) ?? []
    }

    /// Returns the text of a file; `nil` if there is no such file.
    ///
    /// - Throws: ``SessionError/file(_:)``
    static func read(_ path: String) throws(SessionError) -> String? {
        do throws(SystemError) {
            return String(decoding: try RegularFile(path: path).readAll(), as: UTF8.self)
        } catch  where error.fileReason == .missing {
            return nil
        } catch {
            throw SessionError.file(path, error)
        }
    }
}
