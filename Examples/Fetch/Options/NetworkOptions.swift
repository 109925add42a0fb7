// SPDX-License-Identifier: MIT

import ArgumentParser
import AsyncNetworking
import FoundationEssentials

/// The options for connections.
struct NetworkOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Trust the authorities in a PEM file instead of the system's.", valueName: "file"))
    var cacert: String?
    @Flag(name: [.customLong("http1"), .customLong("http1.1")], help: "Use HTTP/1.1 only.")
    var isHTTP1 = false
    @Flag(name: .customLong("http2"), help: "Negotiate HTTP/2, also with libcurl before 8.10.1.")
    var prefersHTTP2 = false
    @Flag(name: .customLong("http2-prior-knowledge"), help: "Use HTTP/2 without negotiation, also without TLS.")
    var isHTTP2 = false
    @Flag(name: .customLong("http3"), help: "Prefer HTTP/3 to HTTP/2 and HTTP/1.1.")
    var prefersHTTP3 = false
    @Flag(name: .customLong("http3-only"), help: "Use HTTP/3 only.")
    var isHTTP3 = false
    @Option(
        name: [.customShort("x"), .customLong("proxy")],
        help: ArgumentHelp(
            "The proxy (http, https, socks4a, socks5 or socks5h); default: from the environment.",
            valueName: "[scheme://][user:password@]host[:port]"))
    var proxy: String?
    @Option(
        help: ArgumentHelp(
            "With -x, hosts to connect to directly, separated by commas; * disables proxies.", valueName: "hosts"))
    var noproxy: String?
    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Connect to an address instead of resolving a host; may be repeated.", valueName: "host:port:address"))
    var resolve: [String] = []
    @Option(help: ArgumentHelp("Connect through a Unix-domain socket.", valueName: "path"))
    var unixSocket: String?
    @Option(help: ArgumentHelp("The connection timeout, including TLS; default: 30.", valueName: "seconds"))
    var connectTimeout: Double?
    @Option(
        name: [.customShort("m"), .customLong("max-time")],
        help: ArgumentHelp("The total timeout for a URL, including the body.", valueName: "seconds"))
    var maxTime: Double?
    @Option(
        help: ArgumentHelp(
            "The maximum speed in bytes per second, in each direction, for all URLs together; 20k, 5M and 1G are "
                + "multiples of 1024 bytes.",
            valueName: "speed"))
    var limitRate: String?
    @Option(help: ArgumentHelp("The maximum number of concurrent requests.", valueName: "number"))
    var parallel = 6

    init() {}

    /// Applies the options to the configuration of a session.
    func configure(_ configuration: inout SessionConfiguration) throws(UsageError) {
        guard 1...1000 ~= parallel else { throw UsageError("--parallel requires a number from 1 to 1000.") }
        // URLs that wait to be printed keep their connections open, so each needs its own.
        configuration.connectionLimits.maximumConnectionsPerHost = max(
            parallel, configuration.connectionLimits.maximumConnectionsPerHost)
        if let limitRate {
            let rate = try Self.rate(limitRate)
            configuration.speedLimits = [SpeedLimit(bytesReceivedPerSecond: rate, bytesSentPerSecond: rate)]
        }
        if let cacert { configuration.tls.trustRoots = .file(cacert) }
        if let connectTimeout {
            configuration.timeouts.connect = try Self.duration(connectTimeout, of: "--connect-timeout")
        }
        configuration.httpVersion = try version
        configuration.connection.unixSocketPath = unixSocket
        for text in resolve { configuration.connection.hostOverrides.append(try Self.hostOverride(text)) }
        configuration.proxy = try makeProxy()
    }

    /// The time limit of each URL, over redirects and segments; `nil` for none.
    var totalTimeout: Duration? {
        get throws(UsageError) {
            guard let maxTime else { return nil }
            return try Self.duration(maxTime, of: "--max-time")
        }
    }

    private var version: HTTPVersionPolicy {
        get throws(UsageError) {
            let chosen: [(isChosen: Bool, option: String, policy: HTTPVersionPolicy)] = [
                (isHTTP1, "--http1", .http1), (prefersHTTP2, "--http2", .http2),
                (isHTTP2, "--http2-prior-knowledge", .http2PriorKnowledge),
                (prefersHTTP3, "--http3", .http3), (isHTTP3, "--http3-only", .http3Only),
            ].filter { $0.0 }
            guard chosen.count <= 1 else {
                throw UsageError("\(chosen[0].option) and \(chosen[1].option) cannot be combined.")
            }
            return chosen.first?.policy ?? .automatic
        }
    }

    private func makeProxy() throws(UsageError) -> ProxyPolicy {
        let bypass = (noproxy ?? "").split(separator: ",").map { String($0.drop { $0 == " " }) }
        guard let proxy else {
            guard noproxy == nil || bypass == ["*"] else {
                throw UsageError("--noproxy with hosts requires -x; for proxies from the environment, set NO_PROXY.")
            }
            return bypass == ["*"] ? .none : .environment
        }
        return .proxy(try Self.proxy(proxy, bypass: bypass))
    }

    private static func proxy(_ text: String, bypass: [String]) throws(UsageError) -> Proxy {
        guard
            let components = URLComponents(string: text.contains("://") ? text : "http://" + text),
            let host = components.host, !host.isEmpty
        else { throw UsageError("“\(text)” is not a proxy, such as http://proxy.example:3128.") }
        guard let kind = Proxy.Kind(rawValue: components.scheme ?? "") else {
            throw UsageError("The scheme of the proxy must be http, https, socks4a, socks5 or socks5h.")
        }
        return Proxy(
            kind, host: host, port: components.port ?? (kind == .https ? 443 : 1080),
            credential: components.user.map { Credential(user: $0, password: components.password ?? "") },
            bypass: bypass)
    }

    private static func hostOverride(_ text: String) throws(UsageError) -> ConnectionOptions.HostOverride {
        let parts = text.split(separator: ":", maxSplits: 2)
        guard parts.count == 3, let port = Int(parts[1]), 1...65_535 ~= port else {
            throw UsageError("“\(text)” is not host:port:address.")
        }
        let address = parts[2].hasPrefix("[") && parts[2].hasSuffix("]") ? parts[2].dropFirst().dropLast() : parts[2]
        return .init(host: String(parts[0]), port: port, address: String(address))
    }

    /// Parses a speed as curl does: a number of bytes, possibly with a unit.
    private static func rate(_ text: String) throws(UsageError) -> Int {
        let units: [Character: Int] = ["b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30]
        let unit = text.last.flatMap { units[Character($0.lowercased())] }
        let number = Double(unit == nil ? text[...] : text.dropLast()).map { $0 * Double(unit ?? 1) }
        guard let number, number >= 1, number <= 1e15 else {
            throw UsageError("--limit-rate requires a number of bytes per second, such as 500k or 2M.")
        }
        return Int(number)
    }

    private static func duration(_ seconds: Double, of option: String) throws(UsageError) -> Duration {
        guard seconds >= 0.001, seconds <= 1e9 else {
            throw UsageError("\(option) requires a number of seconds, at least 0.001.")
        }
        return .seconds(seconds)
    }
}
