// SPDX-License-Identifier: MIT

import ClientKit
import Foundation
import ServerKit

/// A runner of a client in a separate process.
struct Runner {
    private static let secondsAllowed = "120"

    private let programs: URL
    private let environment: [String: String]
    private let benchServer: BenchServer

    init(environment: [String: String]) throws {
        programs = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        self.environment = environment
        benchServer = try BenchServer(program: programs.appendingPathComponent("BenchServer"))
    }

    func isAvailable(_ client: Client) -> Bool {
        guard let executable = client.executable else { return true }
        return FileManager.default.isExecutableFile(atPath: programs.appendingPathComponent(executable).path)
    }

    /// Whether the server of a workload is running.
    func isAvailable(_ workload: Workload) -> Bool {
        workload.server != .nginxHTTP3 || environment["AN_NGINX_HTTP3"] != nil
    }

    /// Runs a client. Returns `nil` after printing the reason if it failed.
    func run(_ workload: Workload, with client: Client) throws -> Sample? {
        if workload.needsRehearsal { _ = try runOnce(workload, with: client) }
        return try runOnce(workload, with: client)
    }

    /// The server that stalls a connection, for one run; `nil` for other workloads.
    private func stallingServer(for workload: Workload) throws -> BenchServer? {
        guard workload.server == .stalling else { return nil }
        let script = URL(fileURLWithPath: "scripts/servers/stalling.py")
        return try BenchServer(program: script, arguments: [try value("AN_SERVER_ROOT") + "/www" + workload.path])
    }

    private func runOnce(_ workload: Workload, with client: Client) throws -> Sample? {
        let server = try stallingServer(for: workload)
        let file = try workload.file.map { try value("AN_SERVER_ROOT") + $0 }
        defer { if workload.action == "download", let file { try? FileManager.default.removeItem(atPath: file) } }

        let process = Process()
        let output = Pipe()
        process.executableURL = programs.appendingPathComponent("Measure")
        process.arguments = [Self.secondsAllowed] + (try command(workload, client, file, server))
        // Without the backtracer a crash ends at once; otherwise its 30 seconds would count as the client's time.
        process.environment = environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { _, new in new }
        process.standardOutput = output
        try process.run()
        let lines = output.fileHandleForReading.readDataToEndOfFile().split(separator: UInt8(ascii: "\n"))
        process.waitUntilExit()

        guard let last = lines.last else { throw Failure("Measure printed nothing") }
        let whole = try JSONDecoder().decode(WholeProcess.self, from: last)
        guard whole.exit_code == 0 else {
            print("\(workload.name): \(client.rawValue) failed with exit code \(whole.exit_code)")
            return nil
        }
        // Installed commands do not measure themselves: their figures include some milliseconds for their start.
        let measured =
            client.executable == nil
            ? MeasuredPhase(requests: 1, wall_s: whole.wall_s, cpu_s: whole.cpu_s)
            : try JSONDecoder().decode(MeasuredPhase.self, from: lines[0])
        return Sample(
            processorMicrosecondsPerRequest: measured.cpu_s * 1_000_000 / measured.requests,
            requestsPerSecond: measured.requests / measured.wall_s,
            wallSeconds: measured.wall_s,
            peakMemoryKilobytes: whole.peak_rss_kb)
    }

    private func command(
        _ workload: Workload, _ client: Client, _ file: String?, _ server: BenchServer?
    ) throws -> [String] {
        let url = try (server?.address ?? address(of: workload.server)) + workload.path
        if client == .aria2 {
            return [
                "aria2c", "--no-conf", "--quiet", "--no-proxy=*", "--split=8", "--max-connection-per-server=8",
                "--min-split-size=1M", "--file-allocation=none", "--allow-overwrite=true", "--auto-file-renaming=false",
                "--dir=/", "--out=\(file ?? "")", url,
            ]
        }
        guard let executable = client.executable else {
            let transfer = workload.action == "download" ? "--output" : "--upload-file"
            return [
                "curl", "-q", "--silent", "--fail", "--noproxy", "*", "--header", "Expect:", transfer, file ?? "-", url,
            ]
                + (workload.action == "upload" ? ["--output", "/dev/null"] : [])
                + (workload.server == .nginxHTTP3 ? ["--http3-only", "--cacert", try value("AN_CA")] : [])
        }
        let requests = client == .urlSession ? workload.requestsOfURLSession : workload.requests
        var command = [
            programs.appendingPathComponent(executable).path, "--workload", workload.action, "--url", url,
            "--requests", "\(requests)", "--warm-up", "\(workload.warmUp)", "--in-flight", "\(workload.inFlight)",
            "--connections", "\(workload.connections ?? workload.inFlight)",
        ]
        if client == .oursPinned { command.append("--pin") }
        if client == .oursOnEventLoop { command.append("--event-loop-executor") }
        if let file { command += ["--file", file] }
        if client == .oursSegmented { command += ["--segments", "8", "--connections", "8"] }
        if workload.server == .nginxTLS || workload.server == .nginxHTTP3 { command += ["--ca", try value("AN_CA")] }
        if workload.server == .nginxHTTP3 { command.append("--http3") }
        // Not with a connection per request: over HTTP/2 a client may send more requests before it receives GOAWAY.
        if workload.server == .nginxTLS, workload.action != "connect" { command.append("--http2") }
        return command
    }

    private func address(of server: Workload.Server) throws -> String {
        switch server {
        case .nginx: try value("AN_NGINX_HTTP")
        case .nginxTLS: try value("AN_NGINX_TLS")
        case .nginxHTTP3: try value("AN_NGINX_HTTP3")
        case .benchServer, .stalling: benchServer.address
        }
    }

    private func value(_ name: String) throws -> String {
        guard let value = environment[name] else { throw Failure("\(name) is not set; run `make bench`") }
        return value
    }

    /// The line of JSON that a client prints.
    private struct MeasuredPhase: Decodable {
        var requests: Double
        var wall_s: Double
        var cpu_s: Double
    }

    /// The line of JSON that Measure prints.
    private struct WholeProcess: Decodable {
        var wall_s: Double
        var cpu_s: Double
        var peak_rss_kb: Double
        var exit_code: Int
    }
}
