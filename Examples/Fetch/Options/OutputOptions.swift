// SPDX-License-Identifier: MIT

import ArgumentParser
import AsyncNetworking
import FoundationEssentials

/// The options for the output.
struct OutputOptions: ParsableArguments, Sendable {
    @Option(
        name: [.customShort("o"), .customLong("output")],
        help: ArgumentHelp("Save the body to a file; - prints it, even if it is binary.", valueName: "file"))
    var file: String?
    @Flag(name: [.customShort("O"), .customLong("remote-name")], help: "Save the body under the file name in the URL.")
    var usesRemoteName = false
    @Flag(
        name: [.customShort("C"), .customLong("continue")],
        help: "Resume a download that an earlier run left incomplete.")
    var continues = false
    @Option(
        help: ArgumentHelp(
            "Save a file in several segments at the same time: a number, or auto for as many as add speed.",
            valueName: "number"))
    var segments: String?
    @Option(
        name: .customLong("mirror"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Request segments from another URL of the same file, too; may be repeated, and requires --checksum.",
            valueName: "url"))
    var mirrors: [String] = []
    @Option(
        help: ArgumentHelp(
            "The required sha256 or sha512 digest of the saved file, such as sha256:9f86….",
            valueName: "algorithm:digest"))
    var checksum: String?
    @Flag(
        name: .customLong("events"),
        help: "Print the data of server-sent events as they arrive; reconnect when the connection ends.")
    var printsEvents = false
    @Flag(
        name: .customLong("json-lines"),
        help: "Print the lines of a stream of JSON as they arrive; report invalid lines.")
    var printsJSONLines = false
    @Flag(name: .customLong("curl"), help: "Print commands of curl instead of sending the requests, without secrets.")
    var printsCurl = false
    @Option(help: ArgumentHelp("Record the exchanges in an HTTP archive, without secrets.", valueName: "file"))
    var har: String?
    @Option(help: ArgumentHelp("Show the exchanges as a waterfall in an HTML page.", valueName: "file"))
    var waterfall: String?
    @Flag(
        name: [.customShort("i"), .customLong("include")],
        help: "Print the response head before the body.")
    var includesHead = false
    @Flag(
        name: [.customShort("f"), .customLong("fail")],
        help: "Treat a status of 400 or above as an error and print no body.")
    var failsOnStatus = false
    @Flag(
        name: [.customShort("s"), .customLong("silent")],
        help: "Show only errors, neither progress nor notices.")
    var isSilent = false
    @Flag(name: [.customShort("v"), .customLong("verbose")], help: "Show the heads of requests and responses.")
    var isVerbose = false
    @Flag(name: .customLong("trace"), help: "Show the timing and the connection; on SIGUSR1, all that runs.")
    var showsTrace = false

    init() {}

    /// Begins the recording that the options ask for; returns `nil` if they do not.
    func makeArchive() throws -> TrafficArchive? {
        har == nil && waterfall == nil ? nil : try TrafficArchive(har: har, page: waterfall)
    }

    /// Returns the destination of the response to a request, or of the messages of a WebSocket connection.
    func target(for request: Request, isWebSocket: Bool) throws(UsageError) -> OutputTarget {
        let target = try target(for: request.url)
        if request.method == .head, target.isFile {
            throw UsageError("The response to HEAD has no body to save; -I and -X HEAD print the head.")
        }
        if isWebSocket, target.isFile || includesHead || printsEvents || printsJSONLines {
            throw UsageError(
                "The messages of a WebSocket URL are printed; -o, -O, -i, --events and --json-lines do not apply.")
        }
        return target
    }

    private func target(for url: URL) throws(UsageError) -> OutputTarget {
        if printsEvents || printsJSONLines {
            let saves = usesRemoteName || file != nil || continues
            guard !saves, !includesHead, !printsEvents || !printsJSONLines else {
                throw UsageError("--events and --json-lines cannot be combined with each other, -o, -O, -C and -i.")
            }
        }
        guard !usesRemoteName else {
            guard file == nil else { throw UsageError("-o and -O cannot be combined.") }
            guard let name = RemoteName.of(url) else {
                throw UsageError("The URL has no file name for -O; use -o.")
            }
            return .file(name)
        }
        guard let file else { return .standardOutput(takesBinary: false) }
        guard !file.isEmpty else { throw UsageError("-o requires a file name.") }
        // Saving to /dev/stdout would replace the device file by a regular file.
        return ["-", "/dev/stdout"].contains(file) ? .standardOutput(takesBinary: true) : .file(file)
    }

    /// Returns the options for saving the responses.
    ///
    /// - Throws: ``UsageError``.
    func downloadOptions(for jobs: [FetchJob]) throws(UsageError) -> DownloadOptions {
        var options = DownloadOptions.durable
        let isSaved = jobs.allSatisfy(\.target.isFile)
        if continues, !isSaved { throw UsageError("--continue requires -o or -O.") }
        if segments != nil || !mirrors.isEmpty, !isSaved {
            throw UsageError("--segments and --mirror require -o or -O.")
        }
        options.segments = try downloadSegments
        for text in mirrors { options.mirrors.append(try Self.mirror(text)) }
        guard let checksum else {
            guard mirrors.isEmpty else { throw UsageError("--mirror requires --checksum.") }
            return options
        }
        guard isSaved, jobs.count == 1 else { throw UsageError("--checksum requires a single URL and -o or -O.") }
        guard let digest = ContentDigest(checksum) else {
            throw UsageError("“\(checksum)” is not a checksum, such as sha256: and 64 hexadecimal digits.")
        }
        options.expectedDigest = digest
        return options
    }

    /// The number of segments; with mirrors, as many as add speed unless a number is given.
    var downloadSegments: DownloadSegments {
        get throws(UsageError) {
            guard let segments else { return mirrors.isEmpty ? 1 : .automatic }
            if segments == "auto" { return .automatic }
            guard let count = Int(segments), 1...64 ~= count else {
                throw UsageError("--segments requires a number from 1 to 64, or auto.")
            }
            return .count(count)
        }
    }

    private static func mirror(_ text: String) throws(UsageError) -> URL {
        guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()), url.host != nil else {
            throw UsageError("“\(text)” is not a URL of a mirror.")
        }
        return url
    }
}
