// SPDX-License-Identifier: MIT

import ArgumentParser
import AsyncNetworking
import FoundationEssentials

/// The options that say what is shown, and where.
struct OutputOptions: ParsableArguments, Sendable {
    @Option(
        name: [.customShort("o"), .customLong("output")],
        help: ArgumentHelp("Save the body; - is standard output, a terminal too.", valueName: "file"))
    var file: String?
    @Flag(name: [.customShort("O"), .customLong("remote-name")], help: "Save the body under the URL's file name.")
    var usesRemoteName = false
    @Flag(
        name: [.customShort("C"), .customLong("continue")],
        help: "Go on with a file that an earlier run has left unfinished.")
    var continues = false
    @Option(
        help: ArgumentHelp(
            "The digest that the saved file must have, such as sha256:9f86…; sha512 too.",
            valueName: "algorithm:digest"))
    var checksum: String?
    @Flag(
        name: [.customShort("i"), .customLong("include")],
        help: "Print the response's head, before a body that is printed.")
    var includesHead = false
    @Flag(
        name: [.customShort("f"), .customLong("fail")],
        help: "Take a status of 400 or above for an error: print no body.")
    var failsOnStatus = false
    @Flag(
        name: [.customShort("s"), .customLong("silent")],
        help: "Show neither progress nor notices; errors are still told.")
    var isSilent = false
    @Flag(name: [.customShort("v"), .customLong("verbose")], help: "Show the heads of requests and responses.")
    var isVerbose = false
    @Flag(name: .customLong("trace"), help: "Show where the time went, and the connection.")
    var showsTrace = false

    init() {}

    /// Where the response of a URL goes.
    func target(for url: URL) throws(UsageError) -> OutputTarget {
        guard !usesRemoteName else {
            guard file == nil else { throw UsageError("-o and -O exclude each other.") }
            guard let name = RemoteName.of(url) else {
                throw UsageError("The URL has no file name for -O; use -o.")
            }
            return .file(name)
        }
        guard let file else { return .standardOutput(takesBinary: false) }
        guard !file.isEmpty else { throw UsageError("-o wants the name of a file.") }
        // A file by the name of /dev/stdout would be put in the place of the one that the shell has opened.
        return ["-", "/dev/stdout"].contains(file) ? .standardOutput(takesBinary: true) : .file(file)
    }

    /// How a response is saved.
    ///
    /// - Throws: ``UsageError``.
    func downloadOptions(for jobs: [FetchJob]) throws(UsageError) -> DownloadOptions {
        var options = DownloadOptions.durable
        let isSaved = jobs.allSatisfy { if case .file = $0.target { true } else { false } }
        if continues, !isSaved { throw UsageError("--continue wants a file: use -o or -O.") }
        guard let checksum else { return options }
        guard isSaved, jobs.count == 1 else { throw UsageError("--checksum wants one URL, and -o or -O.") }
        guard let digest = ContentDigest(checksum) else {
            throw UsageError("“\(checksum)” is not a checksum, such as sha256: and 64 hexadecimal digits.")
        }
        options.expectedDigest = digest
        return options
    }
}
