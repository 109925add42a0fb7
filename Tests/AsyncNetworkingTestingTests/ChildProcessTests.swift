// SPDX-License-Identifier: MIT

import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The programs that tests run.
@Suite(.timeLimit(.minutes(5))) struct ChildProcessTests {
    private func shell(_ script: String) -> Command {
        Command("sh", "-c", script)
    }

    @Test(arguments: [("exit 0", Int32(0)), ("exit 7", 7), ("kill -TERM $$", 143)])
    func `the status is that of a shell`(script: String, status: Int32) async throws {
        #expect(try await shell(script).run().status == status)
    }

    @Test func `output and errors are collected separately, beyond the size of pipes`() async throws {
        let outcome = try await shell("head -c 300000 /dev/zero >&2; head -c 200000 /dev/zero; echo end").run()
        #expect(outcome.output.count == 200_004)
        #expect(outcome.errors.count == 300_000)
    }

    @Test func `too much output kills the program`() async throws {
        var endless = shell("cat /dev/zero >&2")
        endless.maximumOutput = 100_000
        await #expect(throws: Command.Failure.tooMuchOutput(limit: 100_000)) { try await endless.run() }
    }

    @Test func `cancelling kills the program and those that it started`() async throws {
        let started = Task { try await shell("sleep 3600 | sleep 3600").run() }
        started.cancel()
        #expect(try await started.value.status == 128 + SIGKILL)
    }

    @Test func `a program without a file is an error`() async throws {
        await #expect(throws: (any Error).self) { try await Command("/no/such/program").run() }
    }

    @Test func `directory, environment and input are those of the command`() async throws {
        var command = shell("pwd; echo $WORD; cat")
        command.directory = "/usr/bin"
        command.environment = ["WORD": "some text", "PATH": "/usr/bin:/bin"]
        command.input = .file("/proc/sys/kernel/ostype", flags: O_RDONLY)
        #expect(try await command.run().text.hasPrefix("/usr/bin\nsome text\nLinux\n"))
    }

    @Test func `no other descriptor of the tests is inherited`() async throws {
        var ends: [Int32] = [0, 0]
        #expect(unsafe pipe(&ends) == 0)
        defer { ends.forEach { close($0) } }
        #expect(try await shell("ls /proc/$$/fd; exit").run().text == "0\n1\n2\n")
    }

    @Test func `signals that the tests ignore or block end the program`() async throws {
        #expect(try await shell("kill -PIPE $$; exit 1").run().status == 128 + SIGPIPE)
        let outcome = try await onThread {
            var signals = sigset_t()
            unsafe sigfillset(&signals)
            unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
            return try ChildProcess(Command("sh", "-c", "kill -TERM $$; exit 1"))
        }.outcome()
        #expect(outcome.status == 128 + SIGTERM)
    }

    @Test func `a program that has ended is not killed`() async throws {
        let process = try ChildProcess(shell("exit 3"))
        #expect(try await process.outcome().status == 3)
        process.kill()
        #expect(try await process.outcome().status == 3)
    }
}
