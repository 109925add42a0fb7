// SPDX-License-Identifier: MIT

import FoundationEssentials

extension ResponseCache {
    /// The cache of the program, in memory and in a directory: 16 MiB and 256 MiB, at most 100,000 responses. It is
    /// created at its first use, which creates and scans the directory and blocks the calling thread while it does so.
    ///
    /// The directory is `$XDG_CACHE_HOME/PROGRAM/http`, or else `$HOME/.cache/PROGRAM/http` (XDG Base Directory
    /// Specification), with the last component of `argv[0]` as the name of the program. If the directory cannot be
    /// used, the cache is in memory only, and ``diskFailure`` is the reason. If neither variable is an absolute path,
    /// the cache is in memory only, with at most 10,000 responses, and ``diskFailure`` is `nil`.
    public static let standard = makeStandard()

    /// Creates a cache in the directory of ``standard``, with other capacities in bytes.
    package static func makeStandard(capacity: Int64 = 256 << 20, memory: Int = 16 << 20) -> ResponseCache {
        let environment = ProcessInfo.processInfo.environment
        let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 + "/.cache" : nil }
        let base = environment["XDG_CACHE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? home
        let program = CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "program"
        return base.map { .disk("\($0)/\(program)/http", capacity: capacity, memory: memory) } ?? .memory(memory)
    }

    /// Creates a cache in memory. Negative limits count as 0, with which nothing is kept.
    ///
    /// - Parameters:
    ///   - bytes: The capacity in bytes, for bodies and heads; 16 MiB by default. A response whose body is larger than
    ///     a quarter of it is not stored.
    ///   - entries: The maximum number of responses, 10,000 by default.
    public static func memory(_ bytes: Int = 16 << 20, entries: Int = 10_000) -> ResponseCache {
        ResponseCache(CacheLimits(memoryBytes: bytes, diskBytes: 0, entries: entries), directory: nil)
    }

    /// Creates a cache in a directory, with a part of it in memory. Negative limits count as 0.
    ///
    /// The directory is scanned before this function returns, which takes about 2 ms for 1,000 responses, and responses
    /// above the limits are removed. It is created if it is missing; the responses are in its subdirectory `v1`, which
    /// is created so that only its owner can read it. If the directory cannot be used, the cache is in memory only,
    /// with the capacity `memory`; see ``diskFailure``.
    ///
    /// Stored are URLs with their queries, responses with their header fields, including `Set-Cookie`, and, instead of
    /// the credentials of requests, salted checksums of them. A body of more than 64 KiB that the program downloads to
    /// a file is a hard link to that file if possible; if the program changes the file, the stored response is removed
    /// at its next use.
    ///
    /// - Parameters:
    ///   - directory: The path of the directory, absolute or relative to the working directory at the time of this
    ///     call.
    ///   - capacity: The capacity of the directory in bytes, 256 MiB by default; 0 stores nothing. A response whose
    ///     body is larger than a quarter of it is not stored.
    ///   - memory: The capacity in memory in bytes, 16 MiB by default; 0 keeps nothing there. Heads, and bodies up to
    ///     64 KiB, are kept there in addition to the directory, as long as they fit; those used last have priority. A
    ///     response that takes more than a quarter of the capacity is only in the directory.
    ///   - entries: The maximum number of responses, 100,000 by default; 0 stores nothing.
    public static func disk(
        _ directory: String, capacity: Int64 = 256 << 20, memory: Int = 16 << 20, entries: Int = 100_000
    ) -> ResponseCache {
        ResponseCache(
            CacheLimits(memoryBytes: memory, diskBytes: capacity, entries: entries), directory: directory)
    }
}
