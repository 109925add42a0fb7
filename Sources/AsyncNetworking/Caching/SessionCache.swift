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
    /// The targets that are being validated in the background.
    let validations = Lock<Set<CacheKey>>([])
    /// The current time.
    let now: @Sendable () -> CacheTime
    /// Distinguishes the session's cookies and client certificates from those of others.
    private let partition: UInt64
    private let jar: (any CookieJar)?
    private let cookieState: (any CookieState)?
    private let sensitiveFields: Set<HTTPField.Name>

    init?(_ configuration: SessionConfiguration, jar: (any CookieJar)?) {
        guard let cache = configuration.cache else { return nil }
        self.cache = cache
        flights = configuration.sharesTransfers ? RequestFlights() : nil
        willCache = configuration.willCache
        now = configuration.now
        partition =
            configuration.cachePartition.map { cache.salt.checksum(of: "partition", $0) } ?? .random(in: 1 ... .max)
        self.jar = jar
        cookieState = jar as? any CookieState
        sensitiveFields = configuration.redirectPolicy.sensitiveHeaders.union([.authorization, .cookie])
    }

    /// Returns a request as the rules see it.
    @inline(never)
    func request(_ request: Request, _ policy: CachePolicy, mayChangeFields: Bool) -> CacheRequest {
        CacheRequest(
            target: CacheKey.target(request.url), method: request.method, headers: request.headers, mode: policy.mode,
            hasBody: request.body.length != 0, decodesContent: request.sharedOptions?.value.decodesContent ?? true,
            mayAddCookies: mayAddCookies(request), mayChangeFields: mayChangeFields, owner: owner(of: request),
            salt: cache.salt)
    }

    /// Whether the transport may add cookies to a request.
    private func mayAddCookies(_ request: Request) -> Bool {
        guard jar != nil, cookieState?.mayHoldCookies ?? true else { return false }
        return request.handlesCookies ?? request.sharedOptions?.value.handlesCookies ?? true
    }

    /// Returns the owner of the response to a request: the session if cookies may have been sent, if the response sets
    /// a cookie, or if credentials may have been added after the look-up.
    func ownerOfResponse(to request: Request, _ cached: CacheRequest, _ head: ResponseHead) -> UInt64 {
        let isOfSession =
            cached.mayAddCookies || cached.mayChangeFields || mayAddCookies(request)
            || head.headers.contains(.setCookie)
        return isOfSession ? cached.owner.session : cached.owner.credentials
    }

    /// Returns the checksums of a request's credentials: its sensitive header fields, and what the transport sends. The
    /// server to which it is sent in place of the URL's host is part of both.
    ///
    /// With TLS options that accept other servers, or present a certificate, the session and that certificate are part
    /// of both checksums.
    private func owner(of request: Request) -> CacheOwner {
        var text = ""
        for field in request.headers where sensitiveFields.contains(field.name) {
            text += "\(field.name.canonicalName):\(field.value)\n"
        }
        if let user = request.url.userInformation { text += "\(user)\n" }
        if let transport = request.transportAuthentication {
            if let answer = transport.server { text += "\(answer.credential.user)\n\(answer.credential.password)\n" }
            if let signature = transport.signature { text += "\(signature)\n" }
        }
        if let options = request.sharedOptions, options.hasSecurity || options.value.tls.trustRoots != .system {
            text += "\(partition)\n"
            if let identity = options.value.tls.identity(for: HostName(request.url)) { text += "\(identity.source)\n" }
        }
        text += request.otherServer
        guard !text.isEmpty else { return CacheOwner(credentials: 0, session: partition) }
        return CacheOwner(
            credentials: cache.salt.checksum(of: "credentials", text),
            session: cache.salt.checksum(of: "session", text, "\(partition)"))
    }
}

extension Request {
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
