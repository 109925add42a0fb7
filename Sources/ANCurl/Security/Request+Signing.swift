// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

extension Request {
    /// Returns the request with a signature, the fields that it covers, and the path and query in their canonical form,
    /// so that the server computes the signature from the same text. A `Cookie` field is not covered if cookies are
    /// handled, because stored ones are added to it.
    func signed(by signature: AWSSignature, handlingCookies handlesCookies: Bool) throws(TransportError) -> Request {
        try signature.check()
        var request = self
        let time = headers[.amzDate] ?? Date.now.ISO8601Format().filter { $0 != "-" && $0 != ":" }
        request.headers[.amzDate] = time
        if let token = signature.sessionToken, !headers.contains(.amzSecurityToken) {
            request.headers.append(HTTPField(name: .amzSecurityToken, value: token))
        }
        let bodyHash = if let hash = headers[.amzContentSHA256] { hash } else { try bodyHash(for: signature) }
        request.headers[.amzContentSHA256] = bodyHash
        request.url = url.canonical
        let canonical = CanonicalRequest(
            method: method.rawValue, path: request.url.path(percentEncoded: true),
            query: request.url.query(percentEncoded: true) ?? "",
            fields: request.signedFields(handlingCookies: handlesCookies),
            isStorage: signature.service == "s3")
        guard let value = signature.authorization(for: canonical, bodyHash: bodyHash, time: time) else {
            throw TransportError(.internalInconsistency("OpenSSL could not compute a digest."))
        }
        request.headers[.authorization] = value
        return request
    }

    /// The fields that are signed: those of the request that reach the server unchanged.
    private func signedFields(handlingCookies handlesCookies: Bool) -> [(name: String, value: String)] {
        let port = url.port.flatMap { $0 == (url.isHTTPS ? 443 : 80) ? nil : ":\($0)" } ?? ""
        let ownHost = headers.first { $0.name.canonicalName == "host" }?.value
        let host = ownHost ?? (url.host(percentEncoded: true) ?? "") + port
        var fields = [(name: "host", value: host)]
        for field in headers
        where !Self.unsigned.contains(field.name.canonicalName) && (field.name != .cookie || !handlesCookies) {
            fields.append((field.name.rawName, field.value))
        }
        return fields
    }

    /// Fields that the connection changes, or that are signed in another form.
    private static let unsigned: Set<String> = [
        "host", "authorization", "content-length", "transfer-encoding", "connection", "expect", "te", "trailer",
        "upgrade",
    ]

    private func bodyHash(for signature: AWSSignature) throws(TransportError) -> String {
        let digest = MessageDigest(.sha256)
        switch body.content {
        case .none: break
        case .bytes(let data): digest.update(data.bytes)
        case .file(let path):
            do throws(SystemError) {
                try digest.update(file: path)
            } catch {
                throw TransportError(.requestBody(.file(path: path, reason: error.description)))
            }
        case .writer:
            guard signature.service == "s3", url.isHTTPS else {
                throw TransportError(
                    .invalidRequest(
                        .option("A body of a stream cannot be signed; its hash may be given as x-amz-content-sha256.")))
            }
            return "UNSIGNED-PAYLOAD"
        }
        guard let value = digest.value else {
            throw TransportError(.internalInconsistency("OpenSSL could not compute a digest."))
        }
        return ContentDigest(.sha256, Data(value)).hexadecimal
    }
}

extension AWSSignature {
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

extension MessageDigest {
    /// Updates the digest with the contents of a file.
    fileprivate func update(file path: String) throws(SystemError) {
        let file = try RegularFile(path: path)
        while file.remaining > 0 {
            var chunk = Data(count: Int(min(file.remaining, 1 << 18)))
            var bytes = chunk.mutableBytes
            let count = try file.read(into: &bytes)
            guard count > 0 else { break }
            update(chunk.bytes.extracting(first: count))
        }
    }
}

extension URL {
    /// The URL with its path and its query in the form that is signed.
    fileprivate var canonical: URL {
        guard var components = URLComponents(url: standardized, resolvingAgainstBaseURL: true) else { return self }
        components.percentEncodedPath = CanonicalRequest.path(components.percentEncodedPath)
        components.percentEncodedQuery = components.percentEncodedQuery.map(CanonicalRequest.query)
        return components.url ?? self
    }
}

extension HTTPField.Name {
    fileprivate static let amzDate = HTTPField.Name(parsed: "x-amz-date") ?? .authorization
    fileprivate static let amzSecurityToken = HTTPField.Name(parsed: "x-amz-security-token") ?? .authorization
    fileprivate static let amzContentSHA256 = HTTPField.Name(parsed: "x-amz-content-sha256") ?? .authorization
}
