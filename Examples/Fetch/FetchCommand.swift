// SPDX-License-Identifier: MIT

package import ArgumentParser
package import AsyncNetworking
import FoundationEssentials

/// The command `fetch`, which fetches URLs.
package struct FetchCommand: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "fetch",
        abstract: "Fetch URLs over HTTP and print or save the responses.",
        usage: """
            fetch [<options>] <url> ...
            fetch demo [<url>]
            """,
        discussion: """
            URLs are fetched concurrently and printed in the given order. Redirects are followed, and compressed \
            bodies are decompressed. Longer transfers show a progress bar on standard error. A saved file appears \
            under its name when it is complete. After Ctrl-C or a failure, the part received remains in FILE.part if \
            the server supports resuming; --continue resumes it. \
            With a wss or ws URL, the lines of standard input are sent as WebSocket messages, and received ones printed. \
            The exit status is that of the first URL that failed; --exit-statuses lists all.
            """,
        version: SessionManager.libraryVersion,
        subcommands: [DemoCommand.self])

    @Argument(help: ArgumentHelp("The URL to fetch; the default scheme is https.", valueName: "url"))
    var urls: [String] = []
    @OptionGroup(title: "Request") var request: RequestOptions
    @OptionGroup(title: "Body") var body: BodyOptions
    @OptionGroup(title: "Connection") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @Flag(name: .customLong("exit-statuses"), help: "List the exit statuses.")
    var listsExitStatuses = false

    package init() {}

    /// Fetches all URLs. Returns the status of the first one that failed.
    func perform() async throws -> ExitStatus {
        guard !listsExitStatuses else {
            StandardStream.output.print(ExitStatus.table + "\n")
            return .success
        }
        let jobs = try makeJobs()
        let options = try output.downloadOptions(for: jobs)
        var configuration = try makeConfiguration()
        if output.printsCurl { return try await printCommands(for: jobs, configuration) }
        let archive = try output.makeArchive()
        archive?.recorder.install(in: &configuration)
        let status = await perform(jobs, options, configuration)
        do {
            try await archive?.close()
        } catch  where status != .success {
            StandardStream.error.print("fetch: \(error)\n")
        }
        return status
    }

    /// Prints commands of curl.
    private func printCommands(for jobs: [FetchJob], _ configuration: SessionConfiguration) async throws -> ExitStatus {
        try await withSession(configure: { $0 = configuration }) { session in
            for job in jobs {
                let command = try await session.curlCommand(for: job.request)
                try await StandardStream.output.write(Data((command + "\n").utf8))
            }
        }
        return .success
    }

    private func perform(
        _ jobs: [FetchJob], _ options: DownloadOptions, _ configuration: SessionConfiguration
    ) async -> ExitStatus {
        let console = Console()
        let board = TransferBoard()
        let signal = output.showsTrace ? SnapshotSignal() : nil
        return await Interruption.guarding {
            await withTaskGroup { group in
                if !output.isSilent {
                    // Ends by the cancellation below, after the jobs.
                    group.addTask { await ProgressReporter(board: board, console: console).run() }
                }
                let statuses = await withSession(configure: { $0 = configuration }) { session in
                    // Ends by the cancellation below, as well.
                    if let signal { group.addTask { await signal.print(session, on: console) } }
                    return await Fetcher(
                        session: session, output: output, options: options, console: console, board: board
                    )
                    .run(jobs, atOnce: network.parallel)
                }
                group.cancelAll()
                return statuses.first { $0 != .success } ?? .success
            }
        }
    }

    /// Creates a job for each URL.
    ///
    /// - Throws: ``UsageError``, `SerializationError` for a URL, `TransportError` for a header field.
    package func makeJobs() throws -> [FetchJob] {
        // As in `-C -` of curl, which determines the offset itself; here there is no other way.
        let urls = output.continues ? urls.filter { $0 != "-" } : urls
        guard !urls.isEmpty else { throw UsageError("No URL is given.") }
        if urls.count > 1, output.file != nil {
            throw UsageError("-o takes one URL; -O saves each URL under its own name.")
        }
        var names: Set<String> = []
        let content = try body.makeContent()
        let timeout = try network.totalTimeout
        let areWebSockets = urls.map { url in ["ws://", "wss://"].contains { url.lowercased().hasPrefix($0) } }
        if urls.count > 1, !content.body.isReplayable || areWebSockets.count(where: \.self) > 1 {
            throw UsageError("Standard input, and a file that is not a regular one, can be sent to one URL only.")
        }
        return try zip(urls, areWebSockets).enumerated().map { index, entry in
            let (url, isWebSocket) = entry
            // `ws` becomes `http`, and `wss` becomes `https`.
            var request = try request.makeRequest(isWebSocket ? "http" + url.dropFirst(2) : url, content: content)
            request.timeout = timeout
            let target = try output.target(for: request, isWebSocket: isWebSocket)
            if body.resumable, target.isFile {
                throw UsageError("--resumable prints the response, and cannot be combined with -o and -O.")
            }
            if case .file(let path) = target, !names.insert(path).inserted {
                throw UsageError("Two URLs would be saved as \(path).")
            }
            return FetchJob(
                index: index, name: urls.count > 1 ? Redaction.byName.url(url) : "", request: request, target: target,
                isWebSocket: isWebSocket, isResumable: body.resumable)
        }
    }

    /// Creates the configuration of the session.
    package func makeConfiguration() throws -> SessionConfiguration {
        var configuration = SessionConfiguration()
        try network.configure(&configuration)
        if case .count(let count) = try output.downloadSegments {
            configuration.connectionLimits.maximumConnectionsPerHost = max(
                count, configuration.connectionLimits.maximumConnectionsPerHost)
        }
        configuration.redirectPolicy.isEnabled = !request.staysPut
        configuration.redirectPolicy.decision = { redirection in
            Narrator.current?.say(redirection: redirection)
            return redirection.proposed
        }
        return configuration
    }
}
