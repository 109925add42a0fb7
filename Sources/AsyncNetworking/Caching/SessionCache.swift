// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// A session's use of a response cache.
final class SessionCache: Sendable {
    let cache: ResponseCache
    let flights: RequestFlights?
    let willCache: (@Sendable (CacheProposal) async -> CacheProposal?)?
    let state: Lock<SessionState>
    /// The current time.
    let now: @Sendable () -> CacheTime
    /// Distinguishes the session's cookies, client certificates and system tickets from those of others.
    private let partition: UInt64
    /// Whether the program has named the user of the session.
    private let isNamed: Bool
    /// The owners of responses to requests without credentials, which are not computed again for each request.
    private let plainOwners: (withCookies: CacheOwner, without: CacheOwner)
    private let jar: (any CookieJar)?
    private let sensitiveFields: Set<HTTPField.Name>
    /// The session's transfer options.
    private let options: SharedTransferOptions

    init?(
        _ configuration: SessionConfiguration, _ options: SharedTransferOptions, _ state: Lock<SessionState>,
        jar: (any CookieJar)?
    ) {
        guard let cache = configuration.cache else { return nil }
        self.cache = cache
        self.options = options
        self.state = state
        flights = configuration.coalescesRequests ? RequestFlights() : nil
        willCache = configuration.willCache
        now = configuration.date
        partition =
            configuration.cachePartition.map { cache.salt.checksum(of: "partition", $0) }
            ?? .systemRandom(in: 1 ... .max)
        isNamed = configuration.cachePartition != nil
        let makeOwner = { [partition, isNamed] in
            Self.owner([], $0, partition: partition, isNamed: isNamed, cache.salt)
        }
        plainOwners = (makeOwner(true), makeOwner(false))
        self.jar = jar
        sensitiveFields = configuration.redirectPolicy.sensitiveHeaders.union([.authorization, .cookie])
    }

    /// Returns the time and the position of a request that is sent now.
    func beginSending() -> ResponseHead.Sending {
        ResponseHead.Sending { [now] in now().milliseconds }
    }

    /// Returns a request as the rules see it.
    @inline(never)
    func request(_ request: Request, _ policy: CachePolicy, laterChange: FieldChange) -> CacheRequest {
        var headers = request.headers
        // The responses are those to one user, also after a refresh.
        if let token = request.token { headers[.authorization] = token.ticket.lineage.value }
        return CacheRequest(
            target: CacheKey.target(request.url), method: request.method, headers: headers, mode: policy.mode,
            hasBody: request.body.length != 0, decodesContent: request.sharedOptions?.value.decodesContent ?? true,
            mayAddCookies: mayAddCookies(request), laterChange: laterChange, owner: owner(of: request),
            salt: cache.salt)
    }

    /// Whether the transport may add cookies to a request.
    private func mayAddCookies(_ request: Request) -> Bool {
        handlesCookies(request) && jar?.mayHoldCookies ?? true
    }

    /// Returns a request as it was sent: cookies may have come after its look-up.
    func sent(_ request: Request, _ cached: CacheRequest) -> CacheRequest {
        var cached = cached
        if !cached.mayAddCookies { cached.mayAddCookies = mayAddCookies(request) }
        return cached
    }

    /// Returns the owner of the response to a request as it was sent: the session if cookies may have been sent, if the
    /// response sets a cookie, or if credentials may have been added after the look-up.
    func ownerOfResponse(to sent: CacheRequest, _ head: ResponseHead) -> UInt64 {
        let isOfSession = sent.mayAddCookies || sent.laterChange == .any || head.headers.contains(.setCookie)
        return isOfSession ? sent.owner.session : sent.owner.credentials
    }

    /// Returns the owner of the responses to a request: everything by which a response may differ for this program,
    /// besides the target and the fields that `Vary` names.
    ///
    /// | part | replaced by the name of the partition |
    /// |---|---|
    /// | the server that the request reaches instead, the permitted addresses, an explicit proxy, and `Host` | no |
    /// | the trust in servers, if it is not that of the session | no |
    /// | credentials: sensitive fields, user information, those that the transport sends | yes |
    /// | the session's security policy and client certificate | yes |
    ///
    /// A token that an authenticator has refreshed belongs to the same user as the one before. A response that may
    /// depend on stored cookies is not used for requests that do not send them.
    private func owner(of request: Request) -> CacheOwner {
        let parts = request.route + ownTrust(of: request) + (isNamed ? [] : credentials(of: request))
        let usesCookies = handlesCookies(request)
        guard !parts.isEmpty else { return usesCookies ? plainOwners.withCookies : plainOwners.without }
        return Self.owner(parts, usesCookies, partition: partition, isNamed: isNamed, cache.salt)
    }

    private static func owner(
        _ parts: [String], _ usesCookies: Bool, partition: UInt64, isNamed: Bool, _ salt: CacheSalt
    ) -> CacheOwner {
        let session = salt.checksum(of: ["session", usesCookies ? "cookies" : "none", "\(partition)"] + parts)
        if isNamed {
            return CacheOwner(credentials: salt.checksum(of: ["named", "\(partition)"] + parts), session: session)
        }
        return CacheOwner(
            credentials: parts.isEmpty ? 0 : salt.checksum(of: ["credentials"] + parts), session: session)
    }

    /// Returns what decides whether the server of a request is trusted; empty if it is that of the session, which would
    /// otherwise use responses of servers that it refuses. The hash is valid in this process only, as are functions.
    private func ownTrust(of request: Request) -> [String] {
        guard let own = request.sharedOptions, own !== options else { return [] }
        let host = HostName(request.url)
        let trust = own.value.tls.trust(for: host)
        return trust == options.value.tls.trust(for: host) ? [] : ["trust", "\(trust.hashValue)"]
    }

    private func credentials(of request: Request) -> [String] {
        var parts: [String] = []
        for field in request.headers where sensitiveFields.contains(field.name) {
            let lineage = field.name == .authorization ? request.token?.ticket.lineage : nil
            parts += [field.name.canonicalName, lineage?.value ?? field.byteText]
        }
        if let user = request.url.userInformation { parts += ["user", user] }
        if let transport = request.transportAuthentication {
            if let answer = transport.server {
                parts += ["credential", answer.credential.user, answer.credential.password, "\(answer.scheme)"]
                // It stands for a ticket that the system has at that time.
                if answer.scheme == .negotiate { parts += ["\(partition)"] }
            }
            if let key = transport.signature {
                parts += ["signature", key.accessKeyID, key.secretAccessKey, key.sessionToken ?? ""]
                parts += [key.region, key.service]
            }
        }
        return parts + security(of: request)
    }

    /// Returns what protects a request besides the system's authorities and the name of the host; empty for nothing.
    private func security(of request: Request) -> [String] {
        guard let options = request.sharedOptions, options.hasSecurity || options.value.tls.trustRoots != .system else {
            return []
        }
        let (tls, host) = (options.value.tls, HostName(request.url))
        let identity = tls.identity(for: host)
        guard identity != nil || tls.identityChooser != nil || tls.trust(for: host) != TLSOptions().trust(for: host)
        else { return [] }
        return ["security", "\(partition)"] + (identity.map { [$0.source] } ?? [])
    }

    private func handlesCookies(_ request: Request) -> Bool {
        jar != nil && (request.handlesCookies ?? request.sharedOptions?.value.handlesCookies ?? true)
    }
}

extension Request {
    /// What determines the server that a request reaches, besides its URL; empty by default.
    fileprivate var route: [String] {
        var parts = otherServer.isEmpty ? [] : ["server", otherServer]
        if let host = headers.first(where: { $0.name.canonicalName == "host" })?.value, host != url.authority {
            parts += ["host", host]
        }
        guard let options = sharedOptions?.value else { return parts }
        if options.connection.addresses != .any { parts += ["addresses", "\(options.connection.addresses)"] }
        if let resolver = options.connection.dnsOverHTTPS { parts += ["resolver", resolver.absoluteString] }
        if let interface = options.connection.localInterface { parts += ["interface", interface] }
        if case .proxy(let proxy) = options.proxy { parts += ["proxy", "\(proxy.kind) \(proxy.host):\(proxy.port)"] }
        return parts
    }

    /// A text that identifies the server to which the request is sent in place of the URL's host; empty for none.
    var otherServer: String {
        guard let options = sharedOptions else { return "" }
        let overrides = options.value.connection.hostOverrides
        if let path = options.value.connection.unixSocketPath { return "unix:\(path)\n" }
        return overrides.isEmpty ? "" : "\(overrides)\n"
    }
}

extension ClientIdentity {
    /// A text that distinguishes the source of the certificate from others.
    fileprivate var source: String {
        switch content {
        case .pem(let certificates, _): "pem \(certificates.source)"
        case .pkcs12(let bundle): "pkcs12 \(bundle.source)"
        }
    }
}

extension FileOrData {
    fileprivate var source: String {
        switch self {
        case .file(let path): "file \(path)"
        case .data(let bytes): "data \(bytes.base64EncodedString())"
        }
    }
}

extension URL {
    /// The user information of the authority, with which libcurl authenticates; `nil` if it is empty.
    fileprivate var userInformation: String? {
        guard absoluteString.utf8.contains(UInt8(ascii: "@")), let user = user() else { return nil }
        return "\(user):\(password() ?? "")"
    }
}
