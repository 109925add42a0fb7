// SPDX-License-Identifier: MIT

import ArgumentParser
import Glibc

/// Where the program begins: parses the command line, runs the command, and ends with one of ``ExitStatus``.
@main
enum Main {
    static func main() async {
        StandardStream.ignoreBrokenPipes()
        exit(await status().rawValue)
    }

    private static func status() async -> ExitStatus {
        do {
            let words = CommandLine.arguments.dropFirst()
            // argument-parser would take the word for a URL.
            let command: any ParsableCommand =
                words.first == "demo"
                ? try DemoCommand.parse(Array(words.dropFirst())) : try FetchCommand.parseAsRoot(Array(words))
            switch command {
            case let command as FetchCommand: return try await command.perform()
            case let command as DemoCommand: return try await command.perform()
            default:
                // Help and the like, which argument-parser does by itself.
                var command = command
                try command.run()
                return .success
            }
        } catch let error where ExitStatus.knows(error) {
            StandardStream.error.print("fetch: \(error)\n")
            return ExitStatus(for: error)
        } catch {
            // Help, the version, and what argument-parser has to say about the options.
            let message = FetchCommand.fullMessage(for: error) + "\n"
            guard FetchCommand.exitCode(for: error) != .success else {
                StandardStream.output.print(message)
                return .success
            }
            StandardStream.error.print(message)
            return .usage
        }
    }
}
