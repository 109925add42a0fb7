// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The parts of a request that Amazon's signature version 4 covers, in their canonical form: what the server computes
/// from the request that it receives. See
/// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
package struct CanonicalRequest: Hashable, Sendable {
    /// The lines of the request, without that of the body's hash at the end.
    package let text: String
    /// The names of the fields that are covered, in lower case, sorted, and with semicolons between them.
    package let signedHeaders: String

    /// Creates the canonical form of a request.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path, percent-encoded.
    ///   - query: The query as it is sent, percent-encoded.
    ///   - fields: The fields to cover.
    ///   - isStorage: Whether the service is S3, whose paths are neither normalized nor encoded a second time.
    package init(method: String, path: String, query: String, fields: [(name: String, value: String)], isStorage: Bool)
    {
        var values: [String: [String]] = [:]
        for field in fields { values[field.name.lowercased(), default: []].append(Self.collapsing(field.value)) }
        let names = values.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        signedHeaders = names.joined(separator: ";")
        let lines = names.map { "\($0):\((values[$0] ?? []).joined(separator: ","))\n" }
        text =
            "\(method)\n\(isStorage ? path : Self.encoding(normalizing(path), keeping: "/"))\n"
            + "\(Self.query(query))\n\(lines.joined())\n\(signedHeaders)\n"
    }

    /// Returns a value without blanks at its ends, and with one space in place of several.
    private static func collapsing(_ value: String) -> String {
        value.utf8.split(whereSeparator: { $0 == 0x20 || $0 == 0x09 }).map { String(decoding: $0, as: UTF8.self) }
            .joined(separator: " ")
    }

    /// Returns a path in which each segment is encoded like ``query(_:)``. A slash that is encoded stays so.
    package static func path(_ path: String) -> String {
        path.isEmpty
            ? "/" : path.split(at: "/", omittingEmptySubsequences: false).map(recoding).joined(separator: "/")
    }

    /// Returns a query with its parameters sorted by name and then by value, each with `=`, and encoded in the one way
    /// that is canonical: all bytes but unreserved characters, in upper case.
    package static func query(_ query: String) -> String {
        query.split(at: "&").map { part in
            // A form encodes a space as a plus sign, which AWS reads as one; one that is meant is sent as %2B.
            let parts = part.replacing(each: "+", with: "%20").split(
                at: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: recoding(parts[0]), value: recoding(parts.dropFirst().first ?? ""))
        }.sorted { ($0.name, $0.value) < ($1.name, $1.value) }.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    private static func recoding(_ text: Substring) -> String {
        encoding(decoded(text), keeping: "")
    }

    /// Returns the bytes of a percent-encoded text; a percent sign without two digits stands for itself.
    private static func decoded(_ text: Substring) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2, digits.allSatisfy(isHexDigit),
                let value = UInt8(Substring(digits), radix: 16)
            {
                bytes.append(value)
                rest.removeFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "a")...UInt8(ascii: "f"):
            true
        default: false
        }
    }

    /// Returns bytes as text, percent-encoded except for unreserved characters (RFC 3986 §2.3) and some others.
    static func encoding(_ bytes: some Sequence<UInt8>, keeping others: String) -> String {
        var text: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                text.append(byte)
            case _ where others.utf8.contains(byte): text.append(byte)
            default: text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// Returns the bytes of a path without dot segments and empty segments.
private func normalizing(_ path: String) -> [UInt8] {
    let path = path.withoutDotSegments
    let segments = path.split(at: "/")
    return Array(("/" + segments.joined(separator: "/") + (path.hasSuffix("/") && !segments.isEmpty ? "/" : "")).utf8)
}

extension AWSSignature {
    /// Returns the value of `Authorization`; `nil` if OpenSSL failed.
    ///
    /// - Parameters:
    ///   - request: The canonical request.
    ///   - bodyHash: The hexadecimal SHA-256 of the body, or `UNSIGNED-PAYLOAD`.
    ///   - time: The value of `x-amz-date`, such as `20150830T123600Z`.
    package func authorization(for request: CanonicalRequest, bodyHash: String, time: String) -> String? {
        let scope = "\(time.prefix(8))/\(region)/\(service)/aws4_request"
        guard let hash = MessageDigest.sha256(Array((request.text + bodyHash).utf8)) else { return nil }
        let text = "AWS4-HMAC-SHA256\n\(time)\n\(scope)\n\(hash.hexadecimal)"
        var key: [UInt8]? = Array("AWS4\(secretAccessKey)".utf8)
        for part in [String(time.prefix(8)), region, service, "aws4_request", text] {
            key = key.flatMap { MessageDigest.authentication(of: Array(part.utf8), key: $0) }
        }
        return key.map { signature in
            "AWS4-HMAC-SHA256 Credential=\(accessKeyID)/\(scope), SignedHeaders=\(request.signedHeaders), "
                + "Signature=\(signature.hexadecimal)"
        }
    }
}

extension MessageDigest {
    fileprivate static func sha256(_ bytes: [UInt8]) -> [UInt8]? { sha256(Data(bytes)) }

    fileprivate static func sha256(_ data: Data) -> [UInt8]? {
        let digest = MessageDigest(.sha256)
        digest.update(data.bytes)
        return digest.value
    }

    fileprivate static func sha256(ofFile path: String, check: () throws -> Void) async throws -> [UInt8]? {
        let digest = MessageDigest(.sha256)
        let file = try RegularFile(path: path)
        var chunk = Data(count: 256 << 10)
        var turns = HashingTurns()
        while file.remaining > 0 {
            try Task.checkCancellation()
            try check()
            var bytes = chunk.mutableBytes
            let count = try file.read(into: &bytes)
            guard count > 0 else { break }
            digest.update(chunk.bytes.extracting(first: count))
            await turns.pass(count)
        }
        return digest.value
    }

    /// Returns the HMAC of a message with SHA-256 (RFC 2104).
    fileprivate static func authentication(of message: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard let key = key.count > 64 ? sha256(key) : key else { return nil }
        let block = key + [UInt8](repeating: 0, count: 64 - key.count)
        return sha256(block.map { $0 ^ 0x36 } + message).flatMap { inner in
            sha256(block.map { $0 ^ 0x5C } + inner)
        }
    }
}

extension [UInt8] {
    fileprivate var hexadecimal: String { ContentDigest(.sha256, Data(self)).hexadecimal }
}

extension Request {
    /// Returns the request with the fields that a signature covers, except the time, and with the path and query in their
    /// canonical form, so that the server computes the signature from the same text. A file is hashed.
    ///
    /// - Parameter check: Called from time to time while a file is hashed; ends that with the error that it throws.
    func prepared(
        for signature: AWSSignature, check: @escaping @Sendable () throws -> Void
    ) async throws -> Request {
        try signature.check()
        var request = self
        if let token = signature.sessionToken, !headers.contains(.amzSecurityToken) {
            request.headers.append(HTTPField(name: .amzSecurityToken, value: token))
        }
        if !headers.contains(.amzContentSHA256) {
            request.headers[.amzContentSHA256] = try await bodyHash(for: signature, check: check)
        }
        request.url = url.canonical
        // libcurl versions spell some addresses differently.
        if !headers.contains(.host) { request.headers[.host] = try request.url.checkedAuthority() }
        return request
    }

    /// Returns the request, which was prepared, with the time and the signature. A `Cookie` field is not covered if cookies
    /// are handled, because stored ones are added to it.
    func signed(by signature: AWSSignature, handlingCookies handlesCookies: Bool) throws(TransportError) -> Request {
        var request = self
        let time = headers[.amzDate] ?? Date.now.ISO8601Format().filter { $0 != "-" && $0 != ":" }
        request.headers[.amzDate] = time
        let bodyHash = headers[.amzContentSHA256] ?? ""
        let canonical = CanonicalRequest(
            method: method.rawValue, path: request.url.path(percentEncoded: true),
            query: request.url.query(percentEncoded: true) ?? "",
            fields: request.signedFields(handlingCookies: handlesCookies),
            isStorage: signature.isOfStorage)
        guard let value = signature.authorization(for: canonical, bodyHash: bodyHash, time: time) else {
            throw TransportError(.internalInconsistency("OpenSSL could not compute a digest."))
        }
        request.headers[.authorization] = value
        return request
    }

    /// The fields that are signed: those of the request that reach the server unchanged.
    private func signedFields(handlingCookies handlesCookies: Bool) -> [(name: String, value: String)] {
        headers.filter {
            !Self.unsigned.contains($0.name.canonicalName) && ($0.name != .cookie || !handlesCookies)
        }.map { ($0.name.rawName, $0.value) }
    }

    /// Fields that the connection changes, that are for a proxy, or that are signed in another form.
    private static let unsigned: Set<String> = [
        "authorization", "content-length", "transfer-encoding", "connection", "expect", "proxy-authorization", "te",
        "trailer", "upgrade",
    ]

    private func bodyHash(for signature: AWSSignature, check: @escaping @Sendable () throws -> Void) async throws
        -> String
    {
        let value: [UInt8]?
        switch body.content {
        case .none: value = MessageDigest.sha256([])
        case .bytes(let data): value = MessageDigest.sha256(data)
        case .file(let path):
            do {
                // Content that the system generates may be different when it is sent.
                guard case .known = try FileLength(ofFileAt: path) else { return try unsignedBody(signature) }
                value = try await onGlobalExecutor { try await MessageDigest.sha256(ofFile: path, check: check) }
            } catch let error as SystemError {
                throw TransportError(.requestBody(.file(path: path, reason: error.description)))
            }
        case .writer: return try unsignedBody(signature)
        }
        guard let value else {
            throw TransportError(.internalInconsistency("OpenSSL could not compute a digest."))
        }
        return ContentDigest(.sha256, Data(value)).hexadecimal
    }

    /// Returns what stands in place of the hash of a body whose bytes are not known before they are sent.
    private func unsignedBody(_ signature: AWSSignature) throws(TransportError) -> String {
        guard signature.isOfStorage, url.isHTTPS else {
            throw TransportError(
                .invalidRequest(
                    .option("A body of a stream cannot be signed; its hash may be given as x-amz-content-sha256.")))
        }
        return "UNSIGNED-PAYLOAD"
    }
}

extension AWSSignature {
    /// Whether the service follows the rules of S3: paths are not normalized, and streams need no hash.
    fileprivate var isOfStorage: Bool {
        ["s3", "s3express", "s3-object-lambda", "s3-outposts"].contains(service)
    }

    /// Checks that the values can be part of a header field: libcurl would write a line break into it, after which
    /// another field would begin.
    fileprivate func check() throws(TransportError) {
        func check(_ values: String..., for field: String) throws(TransportError) {
            for value in values where value.hasControlCharacters {
                throw TransportError(.invalidRequest(.headerValue(name: field)))
            }
        }
        try check(accessKeyID, secretAccessKey, region, service, for: "Authorization")
        if let sessionToken { try check(sessionToken, for: "x-amz-security-token") }
    }
}

extension URL {
    /// The URL with its path and its query in the form that is signed.
    fileprivate var canonical: URL {
        guard var components = URLComponents(url: withoutDotSegments, resolvingAgainstBaseURL: true) else {
            return self
        }
        components.percentEncodedPath = CanonicalRequest.path(components.percentEncodedPath)
        components.percentEncodedQuery = components.percentEncodedQuery.map(CanonicalRequest.query)
        return components.url ?? self
    }
}

extension HTTPField.Name {
    fileprivate static let amzDate = HTTPField.Name(constant: "x-amz-date")
    fileprivate static let amzSecurityToken = HTTPField.Name(constant: "x-amz-security-token")
    fileprivate static let amzContentSHA256 = HTTPField.Name(constant: "x-amz-content-sha256")
}
