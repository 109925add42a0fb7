// SPDX-License-Identifier: MIT

/// What a client is asked to do, from its command line.
public struct Options: Sendable {
    public var workload: String
    public var url: String
    /// How many requests are measured, after `warmUp` which are not.
    public var requests: Int
    public var warmUp: Int
    public var inFlight: Int
    /// How many connections the client may have at the same time.
    public var connections: Int
    /// A file of certificates to trust, for `https`.
    public var certificateAuthority: String?
    /// Where a download goes to or an upload comes from.
    public var file: String?
    public var prefersHTTP2: Bool

    public init(commandLine: [String]) throws {
        let arguments = try Arguments(commandLine, flags: ["--http2"])
        workload = arguments["--workload"] ?? "get"
        url = arguments["--url"] ?? ""
        requests = try arguments.integer("--requests") ?? 1
        warmUp = try arguments.integer("--warm-up") ?? 0
        inFlight = try arguments.integer("--in-flight") ?? 1
        connections = try arguments.integer("--connections") ?? inFlight
        certificateAuthority = arguments["--ca"]
        file = arguments["--file"]
        prefersHTTP2 = arguments["--http2"] != nil
    }
}
