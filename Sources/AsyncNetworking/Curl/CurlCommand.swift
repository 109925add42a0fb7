// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The command of curl(1) that sends a request: options with their values, a body, and what curl cannot express.
struct CurlCommand {
    /// The words after `curl`: an option, with its value if it has one.
    private(set) var options: [[[UInt8]]] = []
    /// The options of the request that curl lacks, for comments above the command.
    private(set) var notes: [String] = []
    /// The bytes of standard input; `nil` if the command does not read it, or the user has to provide them.
    private(set) var input: Data?

    /// The body of the request as it is sent.
    enum Body {
        case none
        case bytes(Data)
        case file(String)
        /// Bytes that are not known before they are sent, or too many for a command.
        case unknown
    }

    /// Creates the command of a request.
    ///
    /// - Parameters:
    ///   - request: The request, with all fields that the session adds.
    ///   - body: Its body.
    ///   - isChunked: Whether the body is sent without its length.
    ///   - options: Its transfer options.
    ///   - context: What the session adds.
    init(_ request: Request, body: Body, isChunked: Bool, _ options: TransferOptions, context: Context) {
        let rules = context.redaction
        var (fields, body) = (request.headers, body)
        if case .bytes(let bytes) = body {
            let shown = rules.body(bytes, contentType: fields[.contentType], codings: fields.contentCodings) {
                Inflater.content(of: $0, coding: $1, upTo: Int(Request.maximumCommandBody))
            }
            body = .bytes(shown.bytes)
            switch shown {
            case .kept: break
            case .decoded(_, isComplete: false): body = .unknown
            case .decoded:
                fields[.contentEncoding] = nil
                notes.append("the compression of the body")
            case .hidden(let codings):
                let names = codings.joined(separator: ", ")
                notes.append("the body in the coding \(names), in which secrets cannot be found")
            }
        }
        if request.method == .head, case .none = body {
            add("--head")
        } else if request.method != body.impliedMethod {
            add("--request", request.method.rawValue)
            if request.method == .head { notes.append("that a response to HEAD has no body, for which curl waits") }
        }
        // Brackets and braces are literal.
        if request.url.absoluteString.unicodeScalars.contains(where: { "[]{}".unicodeScalars.contains($0) }) {
            add("--globoff")
        }
        add(fields: fields, body, isChunked, options, context)
        add(context.credential, context.signature, context.schemes, rules)
        if context.usesToken { notes.append("the token of an authenticator") }
        if context.answersChallenges { notes.append("the answers of a challenge handler") }
        if context.isIntercepted { notes.append("what interceptors change") }
        add(body)
        let isRedirected = add(context.redirects, of: request, options, context.signature)
        if options.decodesContent { add("--compressed") }
        add(options.httpVersion, isSecure: request.url.isHTTPS)
        add(options.timeouts, timeout: request.timeout)
        add(options.proxy, options.tls.trustRoots, context.schemes, rules)
        add(options.connection, rules)
        if request.url.isHTTPS || isRedirected { add(options.tls, host: HostName(request.url), rules) }
        if !options.speedLimits.isEmpty { notes.append("the limits of the speed") }
        if request.trailers != nil { notes.append("the trailer fields") }
        let url = request.url.withoutDotSegments.absoluteString.unicodeScalars.prefix { $0 != "#" }
        self.options.append([Array(rules.url(String(url)).utf8)])
    }

    /// The parts that a session adds to a request.
    struct Context {
        var redaction = Redaction.standard
        /// The cookies that the session has for the URL.
        var cookies: [Cookie] = []
        var credential: Credential?
        var signature: AWSSignature?
        /// The authentication schemes that libcurl supports.
        var schemes = Set(AuthenticationScheme.allCases)
        /// Whether an authenticator adds a token.
        var usesToken = false
        /// Whether a handler of the program answers challenges.
        var answersChallenges = false
        /// Whether interceptors see the request.
        var isIntercepted = false
        var redirects = RedirectPolicy.none
        /// The value of `Accept-Encoding` for a request without the field.
        var codings = ""
    }

    /// The command for a POSIX shell: comments, and the command with an option on each line.
    var text: String {
        let words = options.map { $0.map(Self.quoted).joined(separator: " ") }
        let command = "curl " + words.joined(separator: " \\\n    ")
        let feed = input.map { "printf '\(Self.escaped($0))' | " } ?? ""
        return notes.map { "# not expressed: \($0.printable)\n" }.joined() + feed + command
    }

    // MARK: Quoting

    /// Returns a word as a POSIX shell reads it: in single quotes if a character might have a meaning, and by printf(1) if
    /// the bytes are not text.
    static func quoted(_ word: [UInt8]) -> String {
        guard !word.isEmpty else { return "''" }
        // At the beginning of a word, some shells expand the sign.
        if word.first != UInt8(ascii: "="), word.allSatisfy(isPlain) { return String(decoding: word, as: UTF8.self) }
        guard let text = String(validating: word, as: UTF8.self) else {
            return "\"$(printf '\(escaped(Data(word)))')\""
        }
        return "'" + text.replacing(each: "'", with: "'\\''") + "'"
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "+")...UInt8(ascii: ":"), UInt8(ascii: "_"), UInt8(ascii: "="), UInt8(ascii: "%"),
            UInt8(ascii: "@"):
            true
        default: false
        }
    }

    /// Returns bytes as the format of printf(1) in single quotes.
    private static func escaped(_ bytes: Data) -> String {
        var text = ""
        for byte in bytes {
            switch byte {
            // Not an option.
            case UInt8(ascii: "-") where text.isEmpty: text = "\\055"
            case UInt8(ascii: "%"): text += "%%"
            case UInt8(ascii: "\n"): text += "\\n"
            case UInt8(ascii: "\r"): text += "\\r"
            case 0x20..<0x7F where byte != UInt8(ascii: "\\") && byte != UInt8(ascii: "'"):
                text.unicodeScalars.append(UnicodeScalar(byte))
            default:
                let digits = String(byte, radix: 8)
                text += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
            }
        }
        return text
    }

    // MARK: Options

    private mutating func add(_ words: String...) {
        options.append(words.map { Array($0.utf8) })
    }

    private mutating func add(
        fields: HTTPFields, _ body: Body, _ isChunked: Bool, _ options: TransferOptions, _ context: Context
    ) {
        let rules = context.redaction
        func added(_ name: HTTPField.Name, _ value: [UInt8]) -> [[UInt8]] {
            let option = name == .proxyAuthorization ? "--proxy-header" : "--header"
            let start = name.rawName
            return [Array(option.utf8), value.isEmpty ? Array("\(start);".utf8) : Array("\(start): ".utf8) + value]
        }
        var cookies = context.cookies.map { "\($0.name)=\($0.value)" }
        for field in fields {
            switch field.name {
            case .contentLength, .transferEncoding: continue
            case .cookie where options.handlesCookies:
                cookies.append(field.value)
                continue
            default: break
            }
            let shown = rules.value(field.value, of: field.name.rawName)
            self.options.append(
                added(field.name, shown == field.value ? field.valueBytes : Array(shown.utf8)))
        }
        if !cookies.isEmpty {
            // Those of the option --cookie are sent also after redirects to other hosts.
            add("--header", "Cookie: \(rules.value(cookies.joined(separator: "; "), of: "Cookie"))")
        }
        // Fields that curl would add.
        func adds(_ name: HTTPField.Name, _ line: String) {
            if !fields.contains(name) { add("--header", line) }
        }
        adds(.userAgent, "User-Agent:")
        if options.decodesContent, !context.codings.isEmpty {
            adds(.acceptEncoding, "Accept-Encoding: \(fields.contains(.range) ? "identity" : context.codings)")
        }
        guard !body.isNone else { return }
        adds(.contentType, "Content-Type:")
        if let wait = options.expectContinueTimeout, !body.isEmpty {
            adds(.expect, "Expect: 100-continue")
            add("--expect100-timeout", wait.curlSeconds)
        } else {
            adds(.expect, "Expect:")
        }
        if isChunked { add("--header", "Transfer-Encoding: chunked") }
    }

    private mutating func add(
        _ credential: Credential?, _ signature: AWSSignature?, _ supported: Set<AuthenticationScheme>,
        _ rules: Redaction
    ) {
        func secret(_ text: String) -> String { rules.hides("password") ? Redaction.mark : text }
        if let signature {
            add("--aws-sigv4", "aws:amz:\(signature.region):\(signature.service)")
            add("--user", "\(signature.accessKeyID):\(secret(signature.secretAccessKey))")
            if let token = signature.sessionToken { add("--header", "x-amz-security-token: \(secret(token))") }
        } else if let credential {
            let schemes = credential.schemes ?? [.digest, .ntlm, .basic]
            // curl fails if it lacks a scheme, where the session uses another one.
            let names = (schemes.count == 1 ? schemes : schemes.intersection(supported)).map(\.curlName).sorted()
            guard !names.isEmpty else { return }
            // curl uses the strongest one that the server offers.
            for name in names { add("--\(name)") }
            add("--user", "\(credential.user):\(secret(credential.password))")
        }
    }

    /// Adds the redirects that curl follows as the session does; returns whether there are any.
    private mutating func add(
        _ policy: RedirectPolicy, of request: Request, _ options: TransferOptions, _ signature: AWSSignature?
    ) -> Bool {
        guard policy.isEnabled, policy.maximum > 0 else { return false }
        // Of the fields that it is given, curl keeps all but two at another origin.
        var sensitive = policy.sensitiveHeaders.subtracting([.authorization, .cookie])
        if options.proxy != .environment || request.url.isHTTPS { sensitive.remove(.proxyAuthorization) }
        let isSensitive = request.headers.contains { sensitive.contains($0.name) }
        guard !isSensitive, signature?.sessionToken == nil else {
            notes.append("redirects, at which curl would send secret header fields to other origins")
            return false
        }
        let host = HostName(request.url)
        guard options.tls.hostPolicies.value(for: host) == nil, options.tls.hostIdentities.value(for: host) == nil
        else {
            notes.append("redirects, at which curl would use the TLS options of the host for others")
            return false
        }
        add("--location")
        add("--max-redirs", "\(policy.maximum)")
        add("--proto-redir", request.url.isHTTPS ? "=https" : "=http,https")
        if policy.decision != nil { notes.append("the decision about redirects") }
        return true
    }

    private mutating func add(_ body: Body) {
        switch body {
        case .none: break
        case .bytes(let bytes):
            if bytes.count <= 100_000, !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil {
                options.append([Array("--data-raw".utf8), Array(bytes)])
            } else {
                // An argument has no NUL, and at most 128 KiB; see execve(2).
                add("--data-binary", "@-")
                input = bytes
            }
        case .file(let path):
            add("--data-binary", "@\(path == "-" ? "./-" : path)")
        case .unknown:
            add("--data-binary", "@-")
            notes.append("the body, which is read from standard input")
        }
    }

    private mutating func add(_ version: HTTPVersionPolicy, isSecure: Bool) {
        switch version {
        case .automatic: break
        case .http1: add("--http1.1")
        // Without TLS, curl would ask for an upgrade.
        case .http2: add(isSecure ? "--http2" : "--http1.1")
        case .http2PriorKnowledge: add(isSecure ? "--http2" : "--http2-prior-knowledge")
        case .http3: add("--http3")
        case .http3Only: add("--http3-only")
        }
    }

    private mutating func add(_ timeouts: Timeouts, timeout: Duration?) {
        if let connect = timeouts.connect { add("--connect-timeout", connect.curlSeconds) }
        if let total = [timeouts.total, timeout].compactMap(\.self).min() { add("--max-time", total.curlSeconds) }
        if let idle = timeouts.idle {
            add("--speed-limit", "1")
            add("--speed-time", "\(max(1, idle.curlMilliseconds / 1000))")
        }
    }

    private mutating func add(
        _ policy: ProxyPolicy, _ roots: TrustRoots, _ supported: Set<AuthenticationScheme>, _ rules: Redaction
    ) {
        switch policy {
        case .environment: break
        case .none: add("--noproxy", "*")
        case .proxy(let proxy):
            let host = proxy.host.contains(":") ? "[\(proxy.host)]" : proxy.host
            add("--proxy", "\(proxy.kind.rawValue)://\(host):\(proxy.port)")
            switch proxy.kind {
            case .http, .socks4a: break
            case .https: add(roots, of: "proxy-")
            // curl would offer a ticket of the user, too.
            case .socks5, .socks5h: add("--socks5-basic")
            }
            if let credential = proxy.credential {
                add(proxyCredential: credential, supported, rules)
            }
            // curl knows neither wildcards nor ports.
            let names = proxy.bypass.map { $0.hasPrefix("*.") ? String($0.dropFirst()) : $0 }
            let known = names.filter {
                $0.split(at: ":", omittingEmptySubsequences: false).count != 2 && !$0.contains("]:")
            }
            if known.count < names.count { notes.append("the exceptions from the proxy that have a port") }
            add("--noproxy", known.joined(separator: ","))
        }
    }

    /// Adds the credential for a proxy, with which curl uses a single scheme.
    private mutating func add(
        proxyCredential credential: Credential, _ supported: Set<AuthenticationScheme>, _ rules: Redaction
    ) {
        let strongest: [AuthenticationScheme] = [.negotiate, .digest, .ntlm, .basic]
        let permitted = credential.schemes ?? [.basic]
        let usable = permitted.count == 1 ? permitted : permitted.intersection(supported)
        let schemes = strongest.filter(usable.contains)
        guard let scheme = schemes.first else { return }
        if credential.schemes != nil { add("--proxy-\(scheme.curlName)") }
        if schemes.count > 1 { notes.append("the other authentication schemes for the proxy") }
        let password = rules.hides("password") ? Redaction.mark : credential.password
        add("--proxy-user", "\(credential.user):\(password)")
    }

    private mutating func add(_ connection: ConnectionOptions, _ rules: Redaction) {
        switch connection.ipVersion {
        case .any: break
        case .v4: add("--ipv4")
        case .v6: add("--ipv6")
        }
        if let path = connection.unixSocketPath { add("--unix-socket", path) }
        if let interface = connection.localInterface { add("--interface", interface) }
        for override in connection.hostOverrides {
            func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
            add(
                "--connect-to",
                "\(bracketed(override.host)):\(override.port):\(bracketed(override.address)):\(override.addressPort)")
        }
        if let url = connection.dnsOverHTTPS { add("--doh-url", rules.url(url.absoluteString)) }
        switch connection.tcpKeepAlive {
        case .seconds(60): break
        case let interval?: add("--keepalive-time", "\(max(1, interval.curlMilliseconds / 1000))")
        case nil: add("--no-keepalive")
        }
        if connection.addresses != .any { notes.append("the policy about addresses") }
    }

    private mutating func add(_ tls: TLSOptions, host: HostName, _ rules: Redaction) {
        let policy = tls.hostPolicies.value(for: host) ?? tls.policy
        add(policy.trustRoots ?? tls.trustRoots)
        add(policy)
        if let identity = tls.identity(for: host) { add(identity, rules) }
        if tls.keyLogPath != nil { notes.append("the file of the TLS secrets") }
        if tls.minimumVersion != .v1_2 { add("--tlsv\(tls.minimumVersion.number)") }
        if let maximum = tls.maximumVersion { add("--tls-max", maximum.number) }
        if let ciphers = tls.cipherList { add("--ciphers", ciphers) }
        if let suites = tls.cipherSuites { add("--tls13-ciphers", suites) }
        if let curves = tls.curves { add("--curves", curves) }
        if !tls.resumesSessions { add("--no-sessionid") }
    }

    /// Adds trusted authorities, of a server by default.
    private mutating func add(_ roots: TrustRoots, of party: String = "") {
        switch roots {
        case .system: break
        case .file(let path):
            add("--\(party)cacert", path)
            // A directory without certificates: those of curl's own would be trusted as well.
            add("--\(party)capath", "/proc/self/task")
        case .pem, .systemAnd:
            notes.append("the trusted authorities\(party.isEmpty ? "" : " of the proxy"), which are in memory")
        }
    }

    private mutating func add(_ policy: SecurityPolicy) {
        switch policy.pinningMode {
        case .none:
            switch (policy.allowsInvalidCertificates, policy.validatesDomainName) {
            case (false, true): break
            case (true, false): add("--insecure")
            default: notes.append("the certificates that the security policy allows")
            }
        case .publicKey:
            let pins = (policy.pins + policy.backupPins).map { "sha256//" + $0.sha256.base64EncodedString() }
            if !pins.isEmpty { add("--pinnedpubkey", pins.joined(separator: ";")) }
            // curl compares only the key of the server's own certificate.
            notes.append("pins of authorities, and the certificates whose keys are pinned")
        case .certificate:
            notes.append("the pinned certificates")
        }
        switch policy.stapling {
        case .ignored: break
        case .preferred: notes.append("the verification of a certificate status that the server need not send")
        case .required: add("--cert-status")
        }
        if let lists = policy.revocationLists {
            if let path = lists.path { add("--crlfile", path) } else { notes.append("the revocation lists in memory") }
        }
        if policy.evaluator != nil { notes.append("the evaluator of the security policy") }
        if policy.isAudited { notes.append("that refused servers are only reported") }
        if policy.verificationTime != nil { notes.append("the time for which certificates are verified") }
        if policy.pinExpiry != nil { notes.append("the time at which the pins expire") }
    }

    /// Returns the path of a certificate, behind which a colon would separate a passphrase.
    private static func escapingColons(in path: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in path.unicodeScalars {
            if scalar == ":" || scalar == "\\" { escaped.append("\\") }
            escaped.append(scalar)
        }
        return String(escaped)
    }

    private mutating func add(_ identity: ClientIdentity, _ rules: Redaction) {
        guard identity.paths.count == (identity.isPKCS12 ? 1 : 2) else {
            return notes.append("the client's certificate, which is in memory")
        }
        if identity.isPKCS12 { add("--cert-type", "P12") }
        add("--cert", Self.escapingColons(in: identity.paths[0]))
        if !identity.isPKCS12 { add("--key", identity.paths[1]) }
        if let passphrase = identity.passphrase, !passphrase.isEmpty {
            add("--pass", rules.hides("passphrase") ? Redaction.mark : passphrase)
        }
    }
}

extension CurlCommand.Body {
    var isNone: Bool {
        if case .none = self { true } else { false }
    }

    var isEmpty: Bool {
        if case .bytes(let bytes) = self { bytes.isEmpty } else { isNone }
    }

    /// The method that curl uses by default.
    var impliedMethod: HTTPRequest.Method { isNone ? .get : .post }
}

extension ClientIdentity {
    fileprivate var isPKCS12: Bool {
        if case .pkcs12 = content { true } else { false }
    }
}

extension AuthenticationScheme {
    /// The name of curl's option.
    fileprivate var curlName: String { description.lowercased() }
}

extension TLSVersion {
    fileprivate var number: String {
        switch self {
        case .v1_0: "1.0"
        case .v1_1: "1.1"
        case .v1_2: "1.2"
        case .v1_3: "1.3"
        }
    }
}

extension Duration {
    /// The duration in seconds, with at most three decimals; at least a millisecond, because 0 is no limit for curl.
    fileprivate var curlSeconds: String {
        let milliseconds = curlMilliseconds
        guard milliseconds % 1000 != 0 else { return "\(milliseconds / 1000)" }
        let decimals = "\(1000 + milliseconds % 1000)".dropFirst()
        return "\(milliseconds / 1000).\(decimals)"
    }

    fileprivate var curlMilliseconds: Int64 {
        max(1, Int64((max(.zero, bounded) / .milliseconds(1)).rounded(.up)))
    }
}
