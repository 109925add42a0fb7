// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import COpenSSL
import FoundationEssentials
import HTTPTypes

extension Request {
    /// The request with what libcurl needs to sign it: the token, the hash of the body, which libcurl does not see before it
    /// signs, and a query in its canonical order. See CURLOPT_AWS_SIGV4(3).
    func preparedToSign() throws(TransportError) -> Request {
        guard let signature = transportAuthentication?.signature else { return self }
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
        switch body.content {
        case .none:
            return SHA256().finished
        case .bytes(let data):
            var hash = SHA256()
            hash.add(data)
            return hash.finished
        case .file(let path):
            var hash = SHA256()
            do throws(SystemError) {
                try hash.add(file: path)
            } catch {
                throw .requestBody(.file(path: path, reason: error.description), TransferFacts())
            }
            return hash.finished
        case .stream:
            guard signature.service == "s3", url.scheme?.isHTTPS == true else {
                throw .invalidRequest(
                    .option("A body of a stream cannot be signed; its hash may be given as x-amz-content-sha256."))
            }
            return "UNSIGNED-PAYLOAD"
        }
    }
}

extension URL {
    /// The URL with the parts of its query sorted, each with its `=`.
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

/// A SHA-256 over bytes that come piece by piece. See EVP_DigestInit(3).
@safe
private struct SHA256: ~Copyable {
    private let context: OpaquePointer?

    init() {
        unsafe context = EVP_MD_CTX_new()
        unsafe _ = EVP_DigestInit_ex(context, EVP_sha256(), nil)
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
    }

    mutating func add(file path: String) throws(SystemError) {
        let file = try RegularFile(path: path)
        while file.remaining > 0 {
            var chunk = Data(count: Int(min(file.remaining, 1 << 18)))
            var bytes = chunk.mutableBytes
            let count = try file.read(into: &bytes)
            guard count > 0 else { break }
            add(chunk.prefix(count))
        }
    }

    mutating func add(_ data: Data) {
        unsafe _ = data.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    }

    /// The hash so far in lower-case hexadecimal, after which nothing can be added.
    var finished: String {
        var digest = [UInt8](repeating: 0, count: 32)
        unsafe _ = EVP_DigestFinal_ex(context, &digest, nil)
        return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
