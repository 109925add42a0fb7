// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials
import Glibc

/// A pipe whose two ends have owners; reading ends once the writing end is closed.
struct TestPipe: ~Copyable {
    let reader: FileDescriptor
    let writer: FileDescriptor

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw SystemError.last("pipe") }
        reader = FileDescriptor(takingOwnershipOf: ends[0])
        writer = FileDescriptor(takingOwnershipOf: ends[1])
    }

    /// Releases ownership of both ends.
    consuming func release() -> (reader: Int32, writer: Int32) {
        (reader.release(), writer.release())
    }
}

extension FileDescriptor {
    /// Reads at most `count` bytes in one call.
    borrowing func bytes(upTo count: Int) throws -> [UInt8] {
        var bytes = Data(count: count)
        var buffer = bytes.mutableBytes
        let read = try self.read(into: &buffer)
        return Array(bytes.prefix(read))
    }

    /// Writes all of `bytes`.
    borrowing func write(_ bytes: [UInt8]) throws {
        try writeAll(Data(bytes).bytes)
    }
}

/// Facts about this process from procfs.
enum Process {
    /// The states of the threads with a name, as in proc(5): `S` for a sleeping thread.
    static func threadStates(named name: String) -> [Character] {
        children(of: "/proc/self/task").compactMap { thread in
            // 12 (name) S …
            guard let text = text(of: "/proc/self/task/\(thread)/stat"),
                let open = text.firstIndex(of: "("), let close = text.lastIndex(of: ")"),
                text[text.index(after: open)..<close] == name
            else { return nil }
            return text[close...].dropFirst(2).first
        }
    }

    /// The number of open epoll sets and eventfds; each loop has one of both.
    static func loopDescriptorCount() -> Int {
        let links = children(of: "/proc/self/fd").compactMap { number in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
        }
        return links.count { $0.contains("eventpoll") || $0.contains("eventfd") }
    }

    private static func children(of directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    private static func text(of path: String) -> String? {
        guard let file = try? FileDescriptor(opening: path, flags: O_RDONLY) else { return nil }
        return (try? file.bytes(upTo: 1024)).map { String(decoding: $0, as: UTF8.self) }
    }
}
