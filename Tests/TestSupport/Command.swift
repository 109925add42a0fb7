// SPDX-License-Identifier: MIT

/// A program that a test runs, with its arguments, streams and environment.
package struct Command: Sendable {
    /// The program and its arguments. A program without a slash is looked up in the `PATH`.
    package var words: [String]
    /// The working directory; `nil` for that of the tests.
    package var directory: String?
    /// The environment; `nil` for that of the tests.
    package var environment: [String: String]?
    /// The standard input.
    package var input = Stream.null
    /// The standard output; `nil` collects it in the outcome.
    package var output: Stream?
    /// The standard error; `nil` collects it in the outcome.
    package var errors: Stream?
    /// Whether the program leads a session of its own. The first terminal that it opens becomes its controlling
    /// terminal; see credentials(7).
    package var leadsSession = false
    /// The largest size of the collected output and of the collected errors, in bytes. A program that exceeds it is
    /// killed.
    package var maximumOutput = 16 << 20

    /// A standard stream of a program.
    package enum Stream: Sendable {
        /// A file, opened for the program with flags of open(2), and created with mode 0600.
        case file(String, flags: Int32)
        /// A descriptor of the tests, which stays open there.
        case descriptor(Int32)

        /// The null device.
        package static let null = Stream.file("/dev/null", flags: 2 /* O_RDWR */)
    }

    /// Creates a command that inherits directory and environment, and whose output is collected.
    package init(_ words: String...) {
        self.init(words)
    }

    /// Creates a command from a list of words.
    package init(_ words: [String]) {
        self.words = words
    }

    /// Runs the program and waits for its end, without blocking the thread.
    ///
    /// If the task is cancelled, as it is by a time limit, the program and its process group are killed.
    package func run() async throws -> Outcome {
        try await ChildProcess(self).outcome()
    }

    /// The result of a program.
    package struct Outcome: Sendable {
        /// The exit status, or 128 plus the number of the signal that ended the program, as in a shell.
        package var status: Int32
        /// The collected standard output.
        package var output: [UInt8]
        /// The collected standard error.
        package var errors: [UInt8]

        /// The output as text, followed by the errors.
        package var text: String { String(decoding: output + errors, as: UTF8.self) }
    }

    /// A reason why a program has no outcome.
    package enum Failure: Error, Equatable {
        /// The program wrote more than the limit, and was killed.
        case tooMuchOutput(limit: Int)
    }
}
