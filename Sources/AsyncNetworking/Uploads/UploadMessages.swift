// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
package import FoundationEssentials
package import HTTPTypes

/// A request of a resumable upload.
package enum UploadExchange: Hashable, Sendable {
    /// Asks the target for its protocol and limits.
    case discover
    /// Creates the upload, with the bytes of a range as content.
    case create(Range<Int64>)
    /// Asks for the number of bytes that the server has.
    case locate
    /// Sends the bytes of a range.
    case append(Range<Int64>)
    /// Removes the upload.
    case cancel

    /// The bytes in the content.
    package var range: Range<Int64>? {
        switch self {
        case .create(let range), .append(let range): range
        case .discover, .locate, .cancel: nil
        }
    }

    /// Whether the upload is created.
    var isCreation: Bool { if case .create = self { true } else { false } }

    /// Whether bytes are appended to an upload whose URL is known.
    var isAppend: Bool { if case .append = self { true } else { false } }
}

/// A message of a resumable upload: the method, the URL and the fields in which it differs from the program's request.
package struct UploadMessage: Hashable, Sendable {
    package let exchange: UploadExchange
    /// The method; `nil` for that of the program's request.
    package var method: HTTPRequest.Method?
    /// The URL; `nil` for that of the program's request.
    package var url: URL?
    package var fields: HTTPFields = [:]
    /// The program's fields that describe the content, as far as the request has them.
    package var contentFields = ContentFields.none
    /// The algorithm of the digest of the content, which the message has if its content is not empty; `nil` for none.
    package var digest: UploadDigest?

    /// The program's fields that describe the content, and its trailer fields, as far as a request has them.
    package enum ContentFields: Hashable, Sendable {
        /// None of them.
        case none
        /// Those that the server applies to the whole, of which the request has a part. Those of a message's content,
        /// such as `Content-Digest`, would describe the part.
        case ofWhole
        /// All of them: the content is the whole.
        case all

        /// Whether a request has a field of the program, which is named in lower case.
        func include(_ name: String) -> Bool {
            guard RedirectPolicy.describesContent(name) else { return true }
            switch (self, name) {
            case (.none, _), (.ofWhole, "content-digest"), (.ofWhole, "content-length"), (.ofWhole, "content-md5"),
                (.ofWhole, "content-range"), (.ofWhole, "digest"), (.ofWhole, "trailer"),
                (.ofWhole, "transfer-encoding"):
                return false
            case (.ofWhole, _), (.all, _): return true
            }
        }
    }
}

/// An algorithm for the digest of the content of one request, and the field that contains it.
package enum UploadDigest: Codable, Hashable, Sendable {
    /// `Content-Digest` by SHA-256 (RFC 9530 §2).
    case contentDigest
    /// `Upload-Checksum` of tus, by an algorithm of the server.
    case checksum(Algorithm)

    /// An algorithm by its name in tus, the preferred one first.
    package enum Algorithm: String, CaseIterable, Codable, Sendable {
        case sha256, sha512, sha1, md5
    }

    /// Returns the field with the digest of the given content.
    func field(_ digest: MessageDigest) throws(SessionError) -> HTTPField {
        guard let bytes = digest.value.map({ Data($0) }) else { throw .digestNotComputed }
        switch self {
        case .contentDigest:
            return HTTPField(name: .contentDigest, value: ContentDigest(.sha256, bytes).fieldValue)
        case .checksum(let algorithm):
            return HTTPField(name: .uploadChecksum, value: "\(algorithm.rawValue) \(bytes.base64EncodedString())")
        }
    }

    /// Creates a digest that has received no bytes.
    func begin() -> MessageDigest {
        switch self {
        case .contentDigest, .checksum(.sha256): MessageDigest(.sha256)
        case .checksum(.sha512): MessageDigest(.sha512)
        case .checksum(.sha1): MessageDigest(.sha1)
        case .checksum(.md5): MessageDigest(.md5)
        }
    }
}

/// The facts about an upload in a response of either protocol.
package struct UploadReply: Sendable {
    package let status: Int
    /// The number of bytes that the server has; `nil` if the response has none, or an invalid one.
    package var offset: Int64?
    /// Whether the server has all bytes and has processed them; `nil` if the response does not say so.
    package var isComplete: Bool?
    /// The length of the whole, as the server knows it.
    package var length: Int64?
    /// The URL of the upload, which is http or https, and https if the response came over https.
    package var location: URL?
    package var limits: UploadLimits?
    /// The time when the upload expires, in seconds since 1970.
    package var expiry: Int64?

    /// Reads a response.
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - uploadProtocol: The protocol of the upload.
    ///   - now: The current time in seconds since 1970.
    package init(_ head: ResponseHead, by uploadProtocol: UploadProtocol, now: Int64) {
        status = head.status.code
        location = head.headers.first(.location).flatMap { URL(reference: $0, relativeTo: head.url) }.flatMap { url in
            guard let scheme = url.scheme?.lowercased(), scheme == "https" || scheme == "http" && !head.url.isHTTPS,
                url.host()?.isEmpty == false
            else { return nil }
            return url
        }
        switch uploadProtocol {
        case .ietf:
            offset = head.headers.naturalItem(.uploadOffset)
            length = head.headers.naturalItem(.uploadLength)
            if case .boolean(let value) = head.headers.structuredItem(.uploadComplete) { isComplete = value }
            limits = UploadLimits(head.headers)
            expiry = limits?.lifetime.map { now.addingClamped($0) }
        case .tus:
            offset = head.headers.natural(.uploadOffset)
            length = head.headers.natural(.uploadLength)
            expiry = head.headers.first(.uploadExpires).flatMap { HTTPDate($0, now: now) }?.seconds
        }
    }
}

/// The limits of a server: `Upload-Limit`, or `Tus-Max-Size`.
package struct UploadLimits: Codable, Hashable, Sendable {
    /// The maximum size of the whole in bytes.
    package var maximumSize: Int64?
    /// The maximum and minimum size of the content of one request in bytes. A request that completes an upload may be
    /// smaller.
    package var (maximumPart, minimumPart): (Int64?, Int64?)
    /// The remaining lifetime of the upload in seconds.
    package var lifetime: Int64?

    /// Creates no limits.
    package init() {}

    /// Reads `Upload-Limit` (draft-ietf-httpbis-resumable-upload §4.1.4); `nil` if it is missing, malformed, or has a
    /// known member of another type, when the whole field is ignored.
    package init?(_ headers: HTTPFields) {
        guard let members = headers.structuredDictionary(.uploadLimit) else { return nil }
        for (key, path) in Self.keys {
            guard let member = members[key] else { continue }
            guard case .integer(let number) = member, number >= 0 else { return nil }
            if let path { self[keyPath: path] = number }
        }
    }

    /// The members, with the properties of those that a client has use for.
    private static var keys: [(String, WritableKeyPath<UploadLimits, Int64?>?)] {
        [
            ("max-size", \.maximumSize), ("min-size", nil), ("max-append-size", \.maximumPart),
            ("min-append-size", \.minimumPart), ("max-age", \.lifetime),
        ]
    }

    /// Replaces the limits that another response states.
    mutating func update(_ other: UploadLimits) {
        maximumSize = other.maximumSize ?? maximumSize
        maximumPart = other.maximumPart ?? maximumPart
        minimumPart = other.minimumPart ?? minimumPart
    }
}

extension HTTPFields {
    /// The integer of a structured field if it is not negative.
    fileprivate func naturalItem(_ name: HTTPField.Name) -> Int64? {
        guard case .integer(let number) = structuredItem(name), number >= 0 else { return nil }
        return number
    }

    /// The decimal digits of a field of tus, which is not a structured field.
    func natural(_ name: HTTPField.Name) -> Int64? {
        let values = self[values: name]
        return values.count == 1 ? Int64(digits: values[0]) : nil
    }

    /// The members of a field that is a list of tokens.
    func tokens(_ name: HTTPField.Name) -> Set<String> {
        Set(HeaderScanner.members(of: self[values: name]).map { $0.lowercased() })
    }
}

extension HTTPField.Name {
    static let tusResumable = HTTPField.Name(constant: "Tus-Resumable")
    static let tusVersion = HTTPField.Name(constant: "Tus-Version")
    static let tusExtension = HTTPField.Name(constant: "Tus-Extension")
    static let tusMaximumSize = HTTPField.Name(constant: "Tus-Max-Size")
    static let tusChecksumAlgorithm = HTTPField.Name(constant: "Tus-Checksum-Algorithm")
    static let uploadOffset = HTTPField.Name(constant: "Upload-Offset")
    static let uploadLength = HTTPField.Name(constant: "Upload-Length")
    static let uploadComplete = HTTPField.Name(constant: "Upload-Complete")
    static let uploadLimit = HTTPField.Name(constant: "Upload-Limit")
    static let uploadExpires = HTTPField.Name(constant: "Upload-Expires")
    static let uploadMetadata = HTTPField.Name(constant: "Upload-Metadata")
    static let uploadChecksum = HTTPField.Name(constant: "Upload-Checksum")
    static let uploadInteropVersion = HTTPField.Name(constant: "Upload-Draft-Interop-Version")
}
