// SPDX-License-Identifier: MIT

import ArgumentParser
import AsyncNetworking

/// `fetch demo`: a tour of the library.
struct DemoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch demo",
        abstract: "Show what the library does, against a server inside this program or a URL of yours.",
        discussion: """
            The URL is asked by GET and HEAD, and sent a small form by POST and a file of 1 MB by PUT. Nothing is left \
            behind on this machine. The exit status is 0 when everything went as it should.
            """)

    @Argument(help: "The URL to try it on; https:// is assumed where no scheme is given.")
    var url: String?

    func perform() async throws -> ExitStatus {
        let url = try url.map { try URLResolver(base: nil).resolve($0.contains("://") ? $0 : "https://" + $0) }
        return await Interruption.guarding {
            var report = DemoReport()
            do {
                try await TemporaryFolder.with { folder in
                    if let url {
                        try await URLTour(url: url, folder: folder).run(&report)
                    } else {
                        try await BuiltInTour.run(&report, folder: folder)
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
