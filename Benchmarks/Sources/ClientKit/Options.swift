// SPDX-License-Identifier: MIT

/// What a client is asked to do, from its command line.
package struct Options: Sendable {
    package var workload: String
    package var url: String
    /// How many requests are measured, after `warmUp` which are not.
    package var requests: Int
    package var warmUp: Int
    package var inFlight: Int
    /// How many connections the client may have at the same time.
    package var connections: Int
    /// A file of certificates to trust, for `https`.
    package var certificateAuthority: String?
    /// Where a download goes to or an upload comes from.
    package var file: String?
    package var prefersHTTP2: Bool
    /// Whether the authority's key is pinned.
    package var pinsAuthority: Bool

    package init(commandLine: [String]) throws {
        let arguments = try Arguments(commandLine, flags: ["--http2", "--pin"])
        workload = arguments["--workload"] ?? "get"
        url = arguments["--url"] ?? ""
        requests = try arguments.integer("--requests") ?? 1
        warmUp = try arguments.integer("--warm-up") ?? 0
        inFlight = try arguments.integer("--in-flight") ?? 1
        connections = try arguments.integer("--connections") ?? inFlight
        certificateAuthority = arguments["--ca"]
        file = arguments["--file"]
        prefersHTTP2 = arguments["--http2"] != nil
        pinsAuthority = arguments["--pin"] != nil
    }
}
