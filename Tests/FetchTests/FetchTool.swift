// SPDX-License-Identifier: MIT

import Dispatch
import FoundationEssentials
import Glibc

/// Runs the program itself, as a user's shell would.
struct FetchTool: Sendable {
    /// A folder that is the program's working folder; removed by ``with(_:)``.
    let folder: String

    /// What the program did.
    struct Outcome {
        var status: Int32
        var output: Data
        var errors: String

        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// Something that the system refused.
    struct Failure: Error {
        let call: String
        let code: Int32
    }

    /// Lends a tool with an empty folder.
    static func with(_ body: (FetchTool) async throws -> Void) async throws {
        let folder = "/tmp/an-fetch-\(UInt64.random(in: .min ... .max))"
        try FileManager.default.createDirectory(atPath: folder + "/work", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(FetchTool(folder: folder))
    }

    /// The names of the files that the program has left in its folder.
    var files: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder + "/work").sorted() }
    }

    /// A file in the program's folder.
    func read(_ name: String) throws -> Data {
        try Data(contentsOf: URL(filePath: "\(folder)/work/\(name)"))
    }

    /// Runs the program with files as its streams.
    func run(_ words: String..., input: String = "") async throws -> Outcome {
        try await run(words, input: input)
    }

    /// Runs the program with files as its streams, and with more variables in its environment.
    func run(
        _ words: [String], input: String = "", environment: [String: String] = [:]
    ) async throws -> Outcome {
        try Data(input.utf8).write(to: URL(filePath: folder + "/in"))
        let process = try unsafe spawn(words, environment: environment) { actions in
            unsafe posix_spawn_file_actions_addopen(&actions, 0, folder + "/in", O_RDONLY, 0)
            unsafe posix_spawn_file_actions_addopen(&actions, 1, folder + "/out", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            unsafe posix_spawn_file_actions_addopen(&actions, 2, folder + "/err", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        }
        let status = await Self.wait(process)
        return Outcome(
            status: status, output: try Data(contentsOf: URL(filePath: folder + "/out")),
            errors: String(decoding: try Data(contentsOf: URL(filePath: folder + "/err")), as: UTF8.self))
    }

    /// Runs the program with a standard output whose reader has gone.
    func runWithoutReader(_ words: String...) async throws -> Outcome {
        var ends: [Int32] = [0, 0]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw Failure(call: "socketpair", code: errno) }
        close(ends[0])
        defer { close(ends[1]) }
        let output = ends[1]
        let process = try unsafe spawn(words) { actions in
            unsafe posix_spawn_file_actions_adddup2(&actions, output, 1)
            unsafe posix_spawn_file_actions_addopen(&actions, 2, folder + "/err", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        }
        let status = await Self.wait(process)
        let errors = try Data(contentsOf: URL(filePath: folder + "/err"))
        return Outcome(status: status, output: Data(), errors: String(decoding: errors, as: UTF8.self))
    }

    /// Runs the program on a pseudo-terminal, with Ctrl-C typed when the screen has shown a text.
    func runOnTerminal(_ words: String..., interruptAt trigger: String? = nil) async throws -> Outcome {
        let (master, path) = try Self.openTerminal()
        let process = try unsafe spawn(words, newSession: true) { actions in
            // The first terminal that a session's leader opens becomes its own.
            for stream: Int32 in 0...2 {
                unsafe posix_spawn_file_actions_addopen(&actions, stream, path, O_RDWR, 0)
            }
        }
        let screen = await Self.blocking { Self.readScreen(master, interruptAt: trigger.map { Data($0.utf8) }) }
        close(master)
        return Outcome(status: await Self.wait(process), output: screen, errors: "")
    }

    /// A pseudo-terminal of 24 lines of 100 columns: this side, and the path of the other. See pty(7), ioctl_tty(2).
    private static func openTerminal() throws -> (master: Int32, path: String) {
        let master = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var isLocked: Int32 = 0
        var number: Int32 = 0
        var size = winsize(ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0)
        // TIOCSPTLCK and TIOCGPTN, which Glibc does not expose.
        guard unsafe ioctl(master, 0x4004_5431, &isLocked) == 0, unsafe ioctl(master, 0x8004_5430, &number) == 0,
            unsafe ioctl(master, UInt(TIOCSWINSZ), &size) == 0
        else { throw Failure(call: "/dev/ptmx", code: errno) }
        return (master, "/dev/pts/\(number)")
    }

    private static func readScreen(_ master: Int32, interruptAt trigger: Data?) -> Data {
        var screen = Data()
        var trigger = trigger
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe Glibc.read(master, &buffer, buffer.count)
            // EIO when the last process has closed its side, see pty(7).
            guard count > 0 else { return screen }
            screen.append(contentsOf: buffer[..<count])
            if let text = trigger, screen.firstRange(of: text) != nil {
                _ = unsafe Glibc.write(master, [3], 1)
                trigger = nil
            }
        }
    }

    private func spawn(
        _ words: [String], environment more: [String: String] = [:], newSession: Bool = false,
        streams: (inout posix_spawn_file_actions_t) -> Void
    ) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe streams(&actions)
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigfillset(&signals)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (newSession ? 0x80 /* POSIX_SPAWN_SETSID */ : 0)
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))

        let program = "/bin/sh"
        let words = [program, "-c", #"cd "$0" && exec "$@""#, folder + "/work", try Self.program] + words
        let variables = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
            .merging(more) { _, new in new }
        var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
        var environment: [UnsafeMutablePointer<CChar>?] = unsafe variables.map { unsafe strdup("\($0)=\($1)") } + [nil]
        defer {
            unsafe arguments.forEach { unsafe free($0) }
            unsafe environment.forEach { unsafe free($0) }
        }
        var process = pid_t()
        let code = unsafe posix_spawn(&process, program, &actions, &attributes, &arguments, &environment)
        guard code == 0 else { throw Failure(call: "posix_spawn", code: code) }
        return process
    }

    /// The program lies beside the tests, in the same build folder.
    private static var program: String {
        get throws {
            let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            var folder = URL(filePath: tests).deletingLastPathComponent()
            while folder.path.count > 1 {
                let program = folder.appending(path: "Fetch").path
                if FileManager.default.isExecutableFile(atPath: program) { return program }
                folder = folder.deletingLastPathComponent()
            }
            throw Failure(call: "stat", code: ENOENT)
        }
    }

    /// The exit status; 128 and the signal's number where a signal ended the program.
    private static func wait(_ process: pid_t) async -> Int32 {
        await blocking {
            var status: Int32 = 0
            unsafe waitpid(process, &status, 0)
            return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
        }
    }

    /// Runs what blocks on a thread of its own.
    private static func blocking<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: body()) }
        }
    }
}
