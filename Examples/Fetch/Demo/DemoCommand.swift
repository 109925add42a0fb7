// SPDX-License-Identifier: MIT

import ArgumentParser

/// `fetch demo`: a tour of the library.
struct DemoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Show what the library does, against a server inside this program or a URL of yours.",
        discussion: "The URL gets requests by GET, HEAD, POST and PUT. Nothing is left behind on this machine.")

    @Argument(help: "The URL to try it on; a built-in server where there is none.")
    var url: String?

    func perform() async throws -> ExitStatus {
        .success
    }
}
