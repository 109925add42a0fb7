// SPDX-License-Identifier: MIT

/// A workload and its parameters for the clients.
struct Workload {
    let name: String
    let title: String
    /// The main figure, for which ratios are printed.
    let figure: Figure
    /// The name of the workload in the clients' options, and the path on the server.
    let action: String
    let server: Server
    let path: String
    var requests = 1
    /// The number of requests of URLSession, which is smaller because it is slow.
    var requestsOfURLSession = 1
    var warmUp = 0
    var inFlight = 1
    /// The maximum number of connections; `nil` for as many as requests in flight.
    var connections: Int?
    var file: String?
    /// Whether each client runs twice and the first run is discarded: the first process that fills the page cache with
    /// new pages can take three times as long.
    var needsRehearsal = false
    let clients: [Client]

    enum Server {
        case nginx, nginxTLS, nginxHTTP3, benchServer
        /// The server of `scripts/servers/stalling.py`.
        case stalling
    }

    static let all = [
        Workload(
            name: "h1-64", title: "59-byte JSON over HTTP/1.1, 64 in flight", figure: .processorTime,
            action: "get", server: .nginx, path: "/small.json",
            requests: 40_000, requestsOfURLSession: 4_000, warmUp: 1_000, inFlight: 64,
            clients: [.rawCurl, .asyncHTTPClient, .urlSession, .ours, .oursOnEventLoop]),
        Workload(
            name: "h2-64", title: "59-byte JSON over HTTP/2 and TLS, 64 in flight", figure: .processorTime,
            action: "get", server: .nginxTLS, path: "/small.json",
            requests: 20_000, warmUp: 1_000, inFlight: 64,
            clients: [.rawCurl, .asyncHTTPClient, .ours, .oursOnEventLoop]),
        Workload(
            name: "h2-64-6", title: "59-byte JSON over HTTP/2 and TLS, 64 in flight on 6 connections",
            figure: .processorTime, action: "get", server: .nginxTLS, path: "/small.json",
            requests: 20_000, warmUp: 1_000, inFlight: 64, connections: 6,
            clients: [.rawCurl, .asyncHTTPClient, .ours, .oursOnEventLoop]),
        Workload(
            name: "h2-64-1", title: "59-byte JSON over HTTP/2 and TLS, 64 in flight on 1 connection",
            figure: .processorTime, action: "get", server: .nginxTLS, path: "/small.json",
            requests: 20_000, warmUp: 1_000, inFlight: 64, connections: 1,
            clients: [.rawCurl, .asyncHTTPClient, .ours, .oursOnEventLoop]),
        Workload(
            name: "h3-64", title: "59-byte JSON over HTTP/3, 64 in flight on 6 connections",
            figure: .processorTime, action: "get", server: .nginxHTTP3, path: "/small.json",
            requests: 20_000, warmUp: 1_000, inFlight: 64, connections: 6,
            clients: [.rawCurl, .ours, .oursOnEventLoop]),
        Workload(
            name: "h1-1", title: "59-byte JSON over HTTP/1.1, one in flight", figure: .processorTime,
            action: "get", server: .nginx, path: "/small.json",
            requests: 10_000, requestsOfURLSession: 2_000, warmUp: 100,
            clients: [.rawCurl, .asyncHTTPClient, .urlSession, .ours, .oursOnEventLoop]),
        Workload(
            name: "post", title: "POST of 900 bytes of JSON, with a decoded response, 64 in flight",
            figure: .processorTime, action: "post", server: .benchServer, path: "/",
            requests: 20_000, warmUp: 1_000, inFlight: 64,
            clients: [.rawCurl, .asyncHTTPClient, .ours, .oursOnEventLoop]),
        Workload(
            name: "get-10k", title: "10 KB over HTTP/1.1, 64 in flight", figure: .processorTime,
            action: "get", server: .nginx, path: "/10k.bin",
            requests: 20_000, warmUp: 1_000, inFlight: 64,
            clients: [.rawCurl, .asyncHTTPClient, .ours, .oursOnEventLoop]),
        Workload(
            name: "get-100k", title: "100 KB over HTTP/1.1, 64 in flight", figure: .processorTime,
            action: "get", server: .nginx, path: "/100k.bin",
            requests: 10_000, warmUp: 1_000, inFlight: 64,
            clients: [.rawCurl, .asyncHTTPClient, .ours, .oursOnEventLoop]),
        Workload(
            name: "handshake", title: "HTTP/1.1 over TLS, one connection per request, no session resumption",
            figure: .processorTime,
            action: "connect", server: .nginxTLS, path: "/closing/small.json",
            requests: 1_000, warmUp: 20,
            clients: [.asyncHTTPClient, .ours, .oursPinned]),
        Workload(
            name: "download", title: "512 MB to a file", figure: .wallTime,
            action: "download", server: .nginx, path: "/512m.bin", file: "/bench-download.bin", needsRehearsal: true,
            clients: [.curlTool, .rawCurl, .asyncHTTPClient, .urlSession, .ours]),
        Workload(
            name: "segments", title: "512 MB to a file, in segments", figure: .wallTime,
            action: "download", server: .nginx, path: "/512m.bin", file: "/bench-download.bin", needsRehearsal: true,
            clients: [.aria2, .ours, .oursSegmented]),
        Workload(
            name: "segments-limit", title: "512 MB to a file, 20 MB/s a connection", figure: .wallTime,
            action: "download", server: .nginx, path: "/limited/512m.bin", file: "/bench-download.bin",
            clients: [.aria2, .ours, .oursSegmented]),
        Workload(
            name: "segments-stall", title: "512 MB to a file, a connection stalls", figure: .wallTime,
            action: "download", server: .stalling, path: "/512m.bin", file: "/bench-download.bin",
            clients: [.aria2, .oursSegmented]),
        Workload(
            name: "h3-download", title: "512 MB to a file over HTTP/3", figure: .wallTime,
            action: "download", server: .nginxHTTP3, path: "/512m.bin", file: "/bench-download.bin",
            needsRehearsal: true, clients: [.curlTool, .rawCurl, .ours]),
        Workload(
            name: "upload", title: "512 MB from a file", figure: .wallTime,
            action: "upload", server: .benchServer, path: "/", file: "/www/512m.bin",
            clients: [.curlTool, .rawCurl, .asyncHTTPClient, .urlSession, .ours]),
        Workload(
            name: "slow-consumer", title: "1 GB to a reader that takes 5 ms per megabyte", figure: .peakMemory,
            action: "stream", server: .nginx, path: "/1g.bin",
            clients: [.rawCurl, .asyncHTTPClient, .urlSession, .ours]),
        Workload(
            name: "in-flight-2000", title: "2,000 in flight, responses after 2 s", figure: .processorTime,
            action: "get", server: .benchServer, path: "/",
            requests: 2_000, requestsOfURLSession: 2_000, inFlight: 2_000,
            clients: [.rawCurl, .asyncHTTPClient, .urlSession, .ours, .oursOnEventLoop]),
        Workload(
            name: "in-flight-9000", title: "9,000 in flight, responses after 2 s", figure: .processorTime,
            action: "get", server: .benchServer, path: "/",
            requests: 9_000, inFlight: 9_000,
            clients: [.rawCurl, .ours, .oursOnEventLoop]),
    ]
}
