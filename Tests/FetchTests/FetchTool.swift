// SPDX-License-Identifier: MIT

import Dispatch
import FoundationEssentials
import Glibc

/// A runner of the built executable, as from a shell.
struct FetchTool: Sendable {
    /// The working directory of the program; deleted by ``with(_:)``.
    let directory: String

    /// The result of running the program.
    struct Outcome {
        var status: Int32
        var output: Data
        var errors: String

        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// An error of a system call.
    struct Failure: Error {
        let call: String
        let code: Int32
    }

    /// Creates a runner with an empty directory and passes it to `body`.
    static func with(_ body: (FetchTool) async throws -> Void) async throws {
        let directory = "/tmp/an-fetch-\(UInt64.random(in: .min ... .max))"
        try FileManager.default.createDirectory(atPath: directory + "/work", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await body(FetchTool(directory: directory))
    }

    /// The names of the files that the program left in its directory.
    var files: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: directory + "/work").sorted() }
    }

    /// Reads a file in the program's directory.
    func read(_ name: String) throws -> Data {
        try Data(contentsOf: URL(filePath: "\(directory)/work/\(name)"))
    }

    /// Runs the program with its standard streams redirected to files.
    func run(_ words: String..., input: String = "") async throws -> Outcome {
        try await run(words, input: input)
    }

    /// Runs the program with its standard streams redirected to files and with additional environment variables.
    func run(
        _ words: [String], input: String = "", environment: [String: String] = [:]
    ) async throws -> Outcome {
        try Data(input.utf8).write(to: URL(filePath: directory + "/in"))
        let process = try unsafe spawn(words, environment: environment) { actions in
            unsafe posix_spawn_file_actions_addopen(&actions, 0, directory + "/in", O_RDONLY, 0)
            unsafe posix_spawn_file_actions_addopen(
                &actions, 1, directory + "/out", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            unsafe posix_spawn_file_actions_addopen(
                &actions, 2, directory + "/err", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        }
        let status = await Self.wait(process)
        return Outcome(
            status: status, output: try Data(contentsOf: URL(filePath: directory + "/out")),
            errors: String(decoding: try Data(contentsOf: URL(filePath: directory + "/err")), as: UTF8.self))
    }

    /// Runs the program with a closed pipe as its standard output.
    func runWithoutReader(_ words: String...) async throws -> Outcome {
        var ends: [Int32] = [0, 0]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw Failure(call: "socketpair", code: errno) }
        close(ends[0])
        defer { close(ends[1]) }
        let output = ends[1]
        let process = try unsafe spawn(words) { actions in
            unsafe posix_spawn_file_actions_adddup2(&actions, output, 1)
            unsafe posix_spawn_file_actions_addopen(
                &actions, 2, directory + "/err", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        }
        let status = await Self.wait(process)
        let errors = try Data(contentsOf: URL(filePath: directory + "/err"))
        return Outcome(status: status, output: Data(), errors: String(decoding: errors, as: UTF8.self))
    }

    /// Runs the program on a pseudo-terminal, and types Ctrl-C when the screen contains a text.
    func runOnTerminal(_ words: String..., interruptAt trigger: String? = nil) async throws -> Outcome {
        let (master, path) = try Self.openTerminal()
        let process = try unsafe spawn(words, newSession: true) { actions in
            // The first terminal that a session leader opens becomes its controlling terminal.
            for stream: Int32 in 0...2 {
                unsafe posix_spawn_file_actions_addopen(&actions, stream, path, O_RDWR, 0)
            }
        }
        let screen = await Self.blocking { Self.readScreen(master, interruptAt: trigger.map { Data($0.utf8) }) }
        close(master)
        return Outcome(status: await Self.wait(process), output: screen, errors: "")
    }

    /// Opens a pseudo-terminal of 24 rows and 100 columns. Returns the master's descriptor and the path of the slave;
    /// see pty(7) and ioctl_tty(2).
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
            // EIO after the last process has closed the slave; see pty(7).
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
        let words = [program, "-c", #"cd "$0" && exec "$@""#, directory + "/work", try Self.program] + words
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

    /// The path of the executable, in the build directory of the tests.
    private static var program: String {
        get throws {
            let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            var directory = URL(filePath: tests).deletingLastPathComponent()
            while directory.path.count > 1 {
                let program = directory.appending(path: "Fetch").path
                if FileManager.default.isExecutableFile(atPath: program) { return program }
                directory = directory.deletingLastPathComponent()
            }
            throw Failure(call: "stat", code: ENOENT)
        }
    }

    /// Returns the exit status, or 128 and the signal number if a signal terminated the program.
    private static func wait(_ process: pid_t) async -> Int32 {
        await blocking {
            var status: Int32 = 0
            unsafe waitpid(process, &status, 0)
            return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
        }
    }

    /// Runs a blocking function on a separate thread.
    private static func blocking<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: body()) }
        }
    }
}
