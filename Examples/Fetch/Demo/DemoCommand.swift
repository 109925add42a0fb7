// SPDX-License-Identifier: MIT

import ArgumentParser
import AsyncNetworking

/// The command `fetch demo`, which demonstrates the library.
struct DemoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch demo",
        abstract: "Demonstrate the library with a server in this process or a URL.",
        discussion: """
            The URL receives a GET, a HEAD, a POST with a small form, and a PUT with a file of 1 MB. No files are left \
            behind on this machine. The exit status is 0 if all steps succeed.
            """)

    @Argument(help: "The URL to use; the default scheme is https.")
    var url: String?

    func perform() async throws -> ExitStatus {
        let url = try url.map { try URLResolver(base: nil).resolve($0.contains("://") ? $0 : "https://" + $0) }
        return await Interruption.guarding {
            var report = DemoReport()
            do {
                try await TemporaryDirectory.with { directory in
                    if let url {
                        try await URLTour(url: url, directory: directory).run(&report)
                    } else {
                        try await BuiltInTour.run(&report, directory: directory)
                    }
                }
                return report.finish()
            } catch {
                if !(error is CancellationError) { StandardStream.error.print("fetch: \(error)\n") }
                return ExitStatus(for: error)
            }
        }
    }
}
