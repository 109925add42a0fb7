// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials
public import HTTPTypes

/// What it takes to go on with a download: where the bytes are that have come, and how to ask for the others.
///
/// It is a value to store where the program likes; the bytes stay in ``partialFile``. Its coded form may have secrets: URLs
/// often do.
public struct ResumeData: Codable, Hashable, Sendable {
    /// The URL of the request, not that of a redirect. A link that has expired can be replaced by another one to the same
    /// file: the server is asked whether it is, by ``validator``.
    public var url: URL
    /// The request's fields, without those that the session calls sensitive (see ``RedirectPolicy/sensitiveHeaders``): who
    /// goes on has to bring credentials along.
    public var headers: HTTPFields
    /// What tells the version of the resource that the bytes are of; nil where only digests can.
    public var validator: Validator?
    /// How many bytes of the partial file count.
    public var offset: Int64
    /// The size of the whole, where the server has told it.
    public var totalBytes: Int64?
    /// The path of the partial file.
    public var partialFile: String
    /// Where the download was to be written; nil where a function was to choose.
    public var destination: String?
    /// The digest that the program expects of the whole.
    ///
    /// The state of a digest half way is not stored, which OpenSSL cannot: who goes on hashes the partial file again.
    public var expectedDigest: ContentDigest?
    /// What the server has said of this version of the whole.
    public var announcedDigests: [ContentDigest]

    /// A strong validator, RFC 9110 §8.8.1: with the same one, each byte is the same.
    public enum Validator: Codable, Hashable, Sendable {
        /// `ETag`, with its quotes.
        case entityTag(String)
        /// `Last-Modified`, as it came.
        case lastModified(String)
    }

    /// The request that goes on with it.
    public var request: Request { Request(url: url, headers: headers) }

    /// What a durable download to a path has left there; nil where there is none.
    public static func left(at destination: String) -> ResumeData? {
        DownloadRecord.read(
            beside: DownloadRecord.partialFile(for: FilePlace(ProcessFolders.absolute(destination)).path))
    }

    /// Whether a later request can be told to be for the same bytes, or verified to be.
    var isVerifiable: Bool { validator != nil || expectedDigest != nil || !announcedDigests.isEmpty }

    /// Removes the partial file, and the record of a durable download.
    public func discard() {
        let manager = FileManager.default
        try? manager.removeItem(atPath: partialFile)
        try? manager.removeItem(atPath: DownloadRecord.path(beside: partialFile))
    }
}

extension ResumeData.Validator {
    /// The strong validator of a response; nil where there is none.
    ///
    /// A weak entity tag says that two versions mean the same, not that their bytes are. A date is strong only when it is a
    /// second older than the response: the file may have changed twice within one. RFC 9110 §8.8.2.2.
    package init?(of head: ResponseHead) {
        if let tag = head.headers.first(.eTag) {
            guard Self.isStrong(tag) else { return nil }
            self = .entityTag(tag)
        } else if let modified = head.headers.first(.lastModified), let date = head.headers.first(.date),
            let modification = HTTPDate(modified, now: 0), let moment = HTTPDate(date, now: 0),
            modification.seconds < moment.seconds
        {
            self = .lastModified(modified)
        } else {
            return nil
        }
    }

    private static func isStrong(_ tag: String) -> Bool {
        tag.utf8.count >= 2 && tag.hasPrefix("\"") && tag.hasSuffix("\"")
    }

    /// The value of `If-Range`.
    var fieldValue: String {
        switch self {
        case .entityTag(let tag): tag
        case .lastModified(let date): date
        }
    }

    /// Whether a response is of another version. One that does not say counts as the same: the server has compared.
    func isContradicted(by head: ResponseHead) -> Bool {
        switch self {
        case .entityTag(let tag): head.headers.first(.eTag).map { $0 != tag } ?? false
        case .lastModified(let date): head.headers.first(.lastModified).map { $0 != date } ?? false
        }
    }
}
