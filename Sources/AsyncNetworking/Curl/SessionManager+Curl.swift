// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSerialization
import FoundationEssentials
import HTTPTypes

extension SessionManager {
    /// Returns a command of curl(1), for a POSIX shell, that sends the same request as this session: to repeat it by hand,
    /// or to show it to the owners of a server.
    ///
    /// ```swift
    /// print(try await api.curlCommand(for: request))
    /// ```
    ///
    /// It contains what the session adds: default header fields, the `Cache-Control` of the cache policy, stored cookies,
    /// the credential or signature of the authentication policy, redirects, and the transfer options, such as proxy,
    /// timeouts and TLS; and `https` in place of `http` for hosts that require it. Interceptors and challenge handlers are not
    /// called, and tokens of an ``Authenticator`` are not requested. These, and options that curl does not have, are
    /// listed in comments above the command. curl compares a pin with the server's own key only, keeps a method
    /// other than GET, HEAD and POST after any redirect, and sends cookies to the scheme, host and port of the URL only.
    ///
    /// Bodies are written as they are sent, encoded and compressed; if secrets are replaced, without the compression,
    /// which is then named in a comment, as is a body in an unknown content coding, of which the command has nothing.
    /// Those that are not text are passed through printf(1). Of a body of more than 1 MiB, or one that can be read only once, the command reads the bytes from
    /// standard input. A file is named by its path.
    ///
    /// - Parameters:
    ///   - request: The request, as it would be passed to ``data(for:)``.
    ///   - redacting: Whether secrets are replaced by `…`, as with ``ANHTTP/Redaction/byName``; `true` by default. If
    ///     `false`, the command contains passwords.
    /// - Returns: The command, without a line break at its end.
    /// - Throws: The error of a body that cannot be encoded or read.
    public nonisolated func curlCommand(
        for request: Request, redacting: Bool = true
    ) async throws -> String {
        var request = request
        try request.encodeBody(with: configuration.json.encoder)
        let inherited = request.options(inheriting: pipeline.options)
        request.inheritOptions(inherited)
        var options = inherited.value
        options.handlesCookies = request.handlesCookies ?? options.handlesCookies
        request.headers.fill(from: pipeline.headers)
        pipeline.requireTLS(of: &request)
        // One that sends nothing adds nothing.
        try? (request.cachePolicy ?? pipeline.cachePolicy).apply(to: &request)
        var context = CurlCommand.Context(redaction: redacting ? .byName : .none)
        context.codings = acceptedCodings
        context.redirects = request.redirectPolicy ?? configuration.redirectPolicy
        context.schemes = pipeline.transport.authenticationSchemes
        context.isIntercepted =
            ![pipeline.interceptors, pipeline.attemptInterceptors, request.attemptInterceptors].allSatisfy(\.isEmpty)
        if options.handlesCookies { context.cookies = await cookies.cookies(for: request.url) }
        let policy = request.authentication ?? configuration.authentication
        context.answersChallenges = (request.challengeHandler ?? policy.challengeHandler) != nil
        if !request.headers.contains(.authorization) {
            let origins = pipeline.origins(of: request)
            context.signature = try policy.signature(for: HostName(request.url))
            context.usesToken = context.signature == nil && policy.authenticator(for: origins) != nil
            if !context.usesToken {
                context.credential = await policy.credential(for: request, of: origins, on: pipeline.transport)
            }
        }
        let (body, isChunked) = try await request.curlBody
        return CurlCommand(request, body: body, isChunked: isChunked, options, context: context).text
    }
}

extension Request {
    /// The body for a command, and whether it is sent without its length.
    fileprivate var curlBody: (CurlCommand.Body, isChunked: Bool) {
        get async throws {
            switch body.kind {
            case .none:
                // They are sent with `Content-Length: 0` (RFC 9110 §8.6).
                return ([.post, .put, .patch].contains(method) ? .bytes(Data()) : .none, trailers != nil)
            case .bytes(let data):
                return (data.count <= Self.maximumCommandBody ? .bytes(data) : .unknown, trailers != nil)
            case .file(let path): return (body.isReplayable ? .file(path) : .unknown, trailers != nil)
            case .stream:
                let isChunked = body.length == nil || trailers != nil
                guard body.isReplayable, body.length ?? 0 <= Self.maximumCommandBody else {
                    return (.unknown, isChunked)
                }
                let bytes = LimitedBytes()
                do {
                    try await body.write(
                        to: RequestBodyWriter { try await bytes.add($0, limit: Self.maximumCommandBody) })
                } catch is LimitedBytes.TooMany {
                    return (.unknown, isChunked)
                }
                return (.bytes(await bytes.data), isChunked)
            }
        }
    }

    /// The maximum number of bytes in a command.
    static let maximumCommandBody: Int64 = 1 << 20
}

/// The bytes that a writer receives.
private actor LimitedBytes {
    private(set) var data = Data()

    struct TooMany: Error {}

    func add(_ chunk: Data, limit: Int64) throws(TooMany) {
        data += chunk
        if data.count > limit { throw TooMany() }
    }
}
