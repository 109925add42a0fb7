// SPDX-License-Identifier: MIT

package import ArgumentParser
package import AsyncNetworking

/// `fetch URL…`: what the tool is for.
package struct FetchCommand: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "fetch",
        abstract: "Fetch URLs over HTTP: print what they answer, or save it.",
        usage: """
            fetch [<options>] <url> ...
            fetch demo [<url>]
            """,
        discussion: """
            Several URLs are fetched at the same time, and printed in the order given. Redirects are followed, and \
            compressed bodies unpacked. A bar for each transfer appears on standard error when they take their time. \
            What is saved appears under its name when it is complete; Ctrl-C, or a failure, leaves what has come in \
            FILE.part where the server allows to go on with it, which --continue does. \
            The exit status is that of the first URL that failed; --exit-statuses lists them.
            """,
        version: SessionManager.libraryVersion,
        subcommands: [DemoCommand.self])

    @Argument(help: ArgumentHelp("What to fetch; https:// is assumed where no scheme is given.", valueName: "url"))
    var urls: [String] = []
    @OptionGroup(title: "Request") var request: RequestOptions
    @OptionGroup(title: "Body") var body: BodyOptions
    @OptionGroup(title: "Connection") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @Flag(name: .customLong("exit-statuses"), help: "List the exit statuses.")
    var listsExitStatuses = false

    package init() {}

    /// Fetches all URLs; ends with the status of the first that failed.
    func perform() async throws -> ExitStatus {
        guard !listsExitStatuses else {
            StandardStream.output.print(ExitStatus.table + "\n")
            return .success
        }
        let jobs = try makeJobs()
        let options = try output.downloadOptions(for: jobs)
        let configuration = try makeConfiguration()
        let console = Console()
        let board = TransferBoard()
        return await Interruption.guarding {
            await withTaskGroup { group in
                if !output.isSilent {
                    // It ends when the jobs have, by the cancellation below.
                    group.addTask { await ProgressReporter(board: board, console: console).run() }
                }
                let statuses = await withSession(configure: { $0 = configuration }) { session in
                    await Fetcher(session: session, output: output, options: options, console: console, board: board)
                        .run(jobs, atOnce: network.parallel)
                }
                group.cancelAll()
                return statuses.first { $0 != .success } ?? .success
            }
        }
    }

    /// The requests to make and where their responses go.
    ///
    /// - Throws: ``UsageError``, `SerializationError` for a URL, `TransportError` for a header.
    package func makeJobs() throws -> [FetchJob] {
        guard !urls.isEmpty else { throw UsageError("There is no URL.") }
        if urls.count > 1, output.file != nil {
            throw UsageError("-o takes one URL; -O saves each URL under its own name.")
        }
        var names: Set<String> = []
        let content = try body.makeContent()
        return try urls.enumerated().map { index, url in
            let request = try request.makeRequest(url, content: content)
            let target = try output.target(for: request.url)
            if case .file(let path) = target, !names.insert(path).inserted {
                throw UsageError("Two URLs would be saved as \(path).")
            }
            return FetchJob(index: index, name: urls.count > 1 ? url : "", request: request, target: target)
        }
    }

    /// How the session is made.
    package func makeConfiguration() throws -> SessionConfiguration {
        var configuration = SessionConfiguration()
        try network.configure(&configuration)
        configuration.redirects.isEnabled = !request.staysPut
        configuration.redirects.decision = { redirection in
            Narrator.current?.say(redirection: redirection)
            return redirection.proposed
        }
        return configuration
    }
}
