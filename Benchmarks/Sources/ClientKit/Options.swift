// SPDX-License-Identifier: MIT

/// The command line options of a client.
package struct Options: Sendable {
    package var workload: String
    package var url: String
    /// The number of requests to measure, after `warmUp` requests that are not measured.
    package var requests: Int
    package var warmUp: Int
    package var inFlight: Int
    /// The maximum number of concurrent connections.
    package var connections: Int
    /// The path of a file with the certificates to trust for `https`.
    package var certificateAuthority: String?
    /// The path of the file to download to or upload from.
    package var file: String?
    /// The number of segments of a download; clients other than this library ignore it.
    package var segments: Int
    package var prefersHTTP2: Bool
    /// Whether only HTTP/3 is used, which the clients other than this library and raw libcurl ignore.
    package var requiresHTTP3: Bool
    /// Whether the public key of the authority is pinned.
    package var pinsAuthority: Bool
    /// Whether the requests' tasks run on the client's event loop.
    package var usesEventLoopExecutor: Bool

    package init(commandLine: [String]) throws {
        let arguments = try Arguments(commandLine, flags: ["--http2", "--http3", "--pin", "--event-loop-executor"])
        workload = arguments["--workload"] ?? "get"
        url = arguments["--url"] ?? ""
        requests = try arguments.integer("--requests") ?? 1
        warmUp = try arguments.integer("--warm-up") ?? 0
        inFlight = try arguments.integer("--in-flight") ?? 1
        connections = try arguments.integer("--connections") ?? inFlight
        certificateAuthority = arguments["--ca"]
        file = arguments["--file"]
        segments = try arguments.integer("--segments") ?? 1
        prefersHTTP2 = arguments["--http2"] != nil
        requiresHTTP3 = arguments["--http3"] != nil
        pinsAuthority = arguments["--pin"] != nil
        usesEventLoopExecutor = arguments["--event-loop-executor"] != nil
    }
}
