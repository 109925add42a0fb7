// SPDX-License-Identifier: MIT

import FoundationEssentials
import Glibc
import TestSupport

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

        fileprivate init(_ outcome: Command.Outcome) {
            status = outcome.status
            output = Data(outcome.output)
            errors = String(decoding: outcome.errors, as: UTF8.self)
        }
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

    /// Runs the program with a file as its standard input.
    func run(_ words: String..., input: String = "") async throws -> Outcome {
        try await run(words, input: input)
    }

    /// Runs the program with a file as its standard input and with additional environment variables.
    func run(
        _ words: [String], input: String = "", environment: [String: String] = [:]
    ) async throws -> Outcome {
        try Data(input.utf8).write(to: URL(filePath: directory + "/in"))
        var command = try command(words)
        command.environment?.merge(environment) { _, new in new }
        command.input = .file(directory + "/in", flags: O_RDONLY)
        return try await Outcome(command.run())
    }

    /// Runs the program with a closed pipe as its standard output.
    func runWithoutReader(_ words: String...) async throws -> Outcome {
        var ends: [Int32] = [0, 0]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw Failure(call: "socketpair", code: errno) }
        close(ends[0])
        defer { close(ends[1]) }
        var command = try command(words)
        command.output = .descriptor(ends[1])
        return try await Outcome(command.run())
    }

    /// Runs the program with a pipe as its standard output and standard error that no one reads, and sends it one SIGTERM
    /// when the pipe is full.
    func terminateWithoutReading(_ words: [String]) async throws -> Outcome {
        var ends: [Int32] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { throw Failure(call: "pipe", code: errno) }
        defer { ends.forEach { close($0) } }
        var command = try command(words)
        command.output = .descriptor(ends[1])
        command.errors = command.output
        let process = try ChildProcess(command)
        do {
            try await eventually {
                var entry = pollfd(fd: ends[1], events: Int16(POLLOUT), revents: 0)
                return unsafe poll(&entry, 1, 0) == 0
            }
        } catch {
            process.kill()
            throw error
        }
        process.send(SIGTERM)
        return try await Outcome(process.outcome())
    }

    /// Runs the program, and kills it by SIGKILL when a condition holds.
    func run(_ words: String..., killedWhen condition: () async throws -> Bool) async throws {
        let process = try ChildProcess(command(words))
        do {
            try await eventually(condition)
        } catch {
            process.kill()
            throw error
        }
        process.kill()
        _ = try await process.outcome()
    }

    /// Runs the program, sends it a signal when a condition holds, and calls a closure when it has answered on standard
    /// error.
    func run(
        _ words: String..., signalledBy signal: Int32, when condition: () async throws -> Bool, then finish: () -> Void
    ) async throws -> Outcome {
        var command = try command(words)
        command.errors = .file(directory + "/errors", flags: O_RDWR | O_CREAT)
        func errors() throws -> String {
            String(decoding: try Data(contentsOf: URL(filePath: directory + "/errors")), as: UTF8.self)
        }
        let process = try ChildProcess(command)
        do {
            try await eventually(condition)
            process.send(signal)
            try await eventually { try errors().contains("\n") }
            finish()
        } catch {
            process.kill()
            throw error
        }
        var outcome = try await Outcome(process.outcome())
        outcome.errors = try errors()
        return outcome
    }

    /// Runs the program on a pseudo-terminal, and types keys, by default Ctrl-C, when the screen contains a text.
    func runOnTerminal(
        _ words: String..., at trigger: String? = nil, typing keys: String = "\u{3}"
    ) async throws -> Outcome {
        try await runOnTerminal(words, at: trigger, typing: keys)
    }

    /// Runs the program on a pseudo-terminal, and types keys when the screen contains a text.
    func runOnTerminal(_ words: [String], at trigger: String?, typing keys: String) async throws -> Outcome {
        let (master, path) = try Self.openTerminal()
        defer { close(master) }
        var command = try command(words)
        command.leadsSession = true
        command.input = .file(path, flags: O_RDWR)
        command.output = command.input
        command.errors = command.input
        let process = try ChildProcess(command)
        let screen = try await onThread { Self.readScreen(master, at: trigger, typing: Array(keys.utf8)) }
        var outcome = try await Outcome(process.outcome())
        outcome.output = screen
        return outcome
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

    private static func readScreen(_ master: Int32, at trigger: String?, typing keys: [UInt8]) -> Data {
        var screen = Data()
        var trigger = trigger.map { Data($0.utf8) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe Glibc.read(master, &buffer, buffer.count)
            // EIO after the last process has closed the slave; see pty(7).
            guard count > 0 else { return screen }
            screen.append(contentsOf: buffer[..<count])
            if let text = trigger, screen.firstRange(of: text) != nil {
                _ = unsafe Glibc.write(master, keys, keys.count)
                trigger = nil
            }
        }
    }

    /// The program with arguments, in its directory and without proxies.
    private func command(_ words: [String]) throws -> Command {
        var command = Command([try Self.program] + words)
        command.directory = directory + "/work"
        command.environment = ProcessInfo.processInfo.environment.filter {
            !$0.key.lowercased().hasSuffix("_proxy")
        }
        return command
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
}
