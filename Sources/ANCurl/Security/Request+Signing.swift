// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

extension Request {
    /// Returns the request with additions that libcurl needs for signing: the token, the hash of the body, which
    /// libcurl does not read before it signs, and a canonical query. See CURLOPT_AWS_SIGV4(3).
    func prepared(for signature: AWSSignature) throws(TransportError) -> Request {
        try signature.check()
        var request = self
        if let token = signature.sessionToken, !headers.contains(.amzSecurityToken) {
            request.headers.append(HTTPField(name: .amzSecurityToken, value: token))
        }
        if !headers.contains(.amzContentSHA256) {
            request.headers.append(HTTPField(name: .amzContentSHA256, value: try bodyHash(for: signature)))
        }
        request.url = url.withCanonicalQuery
        return request
    }

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
    /// The URL with the query parameters sorted, each with `=`.
    fileprivate var withCanonicalQuery: URL {
        guard let query = query(percentEncoded: true), !query.isEmpty,
            var components = URLComponents(url: self, resolvingAgainstBaseURL: true)
        else { return self }
        let parts = query.split(separator: "&").map { $0.contains("=") ? String($0) : "\($0)=" }
        components.percentEncodedQuery = parts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.joined(
            separator: "&")
        return components.url ?? self
    }
}

extension HTTPField.Name {
    fileprivate static let amzSecurityToken = HTTPField.Name(parsed: "x-amz-security-token") ?? .authorization
    fileprivate static let amzContentSHA256 = HTTPField.Name(parsed: "x-amz-content-sha256") ?? .authorization
}
