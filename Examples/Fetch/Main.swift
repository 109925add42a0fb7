// SPDX-License-Identifier: MIT

import ArgumentParser
import Glibc

/// The entry point: parses the command line, runs the command, and exits with an ``ExitStatus``.
@main
enum Main {
    static func main() async {
        StandardStream.ignoreBrokenPipes()
        exit(await status().rawValue)
    }

    private static func status() async -> ExitStatus {
        do {
            let words = CommandLine.arguments.dropFirst()
            // ArgumentParser would parse `demo` as a URL.
            let command: any ParsableCommand =
                words.first == "demo"
                ? try DemoCommand.parse(Array(words.dropFirst())) : try FetchCommand.parseAsRoot(Array(words))
            switch command {
            case let command as FetchCommand: return try await command.perform()
            case let command as DemoCommand: return try await command.perform()
            default:
                // Help and other commands that ArgumentParser implements.
                var command = command
                try command.run()
                return .success
            }
        } catch OutputError.readerGone {
            return .cannotWrite
        } catch let error where ExitStatus.knows(error) {
            StandardStream.error.print("fetch: \(error)\n")
            return ExitStatus(for: error)
        } catch {
            // Help, the version, and ArgumentParser's errors about options.
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
