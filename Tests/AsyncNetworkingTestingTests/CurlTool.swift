// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import FoundationEssentials
import Glibc

/// Runs the system's curl(1), an independent client.
enum CurlTool {
    struct Outcome {
        var exitCode: Int32
        var output: String
    }

    /// Runs curl with arguments and waits for its end; the output includes standard error.
    static func run(_ arguments: [String]) throws -> Outcome {
        var ends: [Int32] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { throw RawClient.Failure.system(errno) }
        defer { close(ends[0]) }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
        unsafe posix_spawn_file_actions_addclose(&actions, ends[0])
        let fixed = ["curl", "-sS", "--max-time", "20", "--noproxy", "*"]
        var words: [UnsafeMutablePointer<CChar>?] = unsafe (fixed + arguments).map { unsafe strdup($0) } + [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        var process = pid_t()
        let code = unsafe posix_spawnp(&process, "curl", &actions, nil, &words, nil)
        close(ends[1])
        guard code == 0 else { throw RawClient.Failure.system(code) }
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(ends[0], &buffer, buffer.count)
            guard count > 0 else { break }
            output += buffer[..<count]
        }
        var status: Int32 = 0
        unsafe waitpid(process, &status, 0)
        return Outcome(exitCode: (status >> 8) & 0xFF, output: String(decoding: output, as: UTF8.self))
    }
}

/// A temporary directory, deleted when this object is released.
final class TemporaryDirectory: Sendable {
    let path = "/tmp/an-kit-\(UInt64.random(in: 0...UInt64.max))"

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}
