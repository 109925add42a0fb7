// SPDX-License-Identifier: MIT

public import AsyncNetworking
public import Foundation
import FoundationXML

/// A Metalink document (RFC 5854): files, each with the URLs of its mirrors, and the digests that verify them.
///
/// ```swift
/// let content = try await api.get("disk.iso.meta4", as: .xmlParser).value
/// let file = try Metalink(content).files[0]
/// let task = api.download(Request(url: file.urls[0]), to: "disk.iso", options: file.downloadOptions)
/// ```
///
/// Whoever sends the document decides which servers requests are sent to, and what the files contain: it is to be
/// received over TLS, or verified in another way, such as by its signature, which this type does not verify.
public struct Metalink: Hashable, Sendable {
    /// The files, in the order of the document, at least one.
    public let files: [File]

    /// A file of a ``Metalink``.
    public struct File: Hashable, Sendable {
        /// The name of the file, which may be a relative path with `/` as its separator, such as `images/disk.iso`. It
        /// never leaves the directory against which it is resolved: no part of it is empty, `.` or `..`, and it has no
        /// backslash, control character, line separator or character that changes the direction of text.
        public let name: String
        /// The size in bytes; `nil` if the document does not contain it.
        public let size: Int64?
        /// The SHA-256 and SHA-512 digests of the whole file; digests by other algorithms are left out.
        public let digests: [ContentDigest]
        /// The digests of the pieces; `nil` if the document has none by SHA-256 or SHA-512, or does not contain the
        /// ``size``.
        public let pieceDigests: PieceDigests?
        /// The http and https URLs, at least one, sorted by priority. Those with other schemes, such as ftp, and torrents
        /// are left out.
        public let urls: [URL]

        /// Options to download the file from the first of the ``urls``: with the others as mirrors, as many segments as
        /// add speed, and the digests. There are no mirrors if the document has no digest by which to verify them. The
        /// download is not durable.
        public var downloadOptions: DownloadOptions {
            DownloadOptions().with {
                $0.segments = .automatic
                $0.expectedDigest = digests.first
                $0.pieceDigests = pieceDigests
                if !digests.isEmpty || pieceDigests != nil { $0.mirrors = Array(urls.dropFirst()) }
            }
        }
    }

    /// The maximum numbers of files, and of the URLs and digests of one file.
    static let maximumFiles = 1_000
    static let maximumURLs = 100
    static let maximumDigests = 100

    /// Creates a value from a document.
    ///
    /// Elements and attributes that RFC 5854 does not define, and those that concern neither names, URLs nor digests, are
    /// ignored. The calling thread parses the document twice: to check whether it is well-formed, and to read it.
    ///
    /// - Throws: `SerializationError.xml` if the document is not well-formed; has another root element than `metalink` in
    ///   the namespace of RFC 5854, as version 3 has; has no file, a file without a URL or with a name that is not a
    ///   relative path, more than 1,000 files, or a file with more than 100 URLs or 100 digests of the whole; or if a
    ///   size, a priority, a URL or a digest is malformed, or there are more or fewer digests than pieces.
    public init(_ content: XMLContent) throws(SerializationError) {
        try content.checkWellFormed()
        let parser = content.makeParser()
        parser.shouldProcessNamespaces = true
        let reader = MetalinkReader()
        parser.delegate = reader
        withExtendedLifetime(reader) { _ = parser.parse() }
        if reader.problem == nil, reader.files.isEmpty { reader.problem = ("no file", "") }
        if let (problem, text) = reader.problem {
            let line = parser.lineNumber
            throw .xml(
                .init(
                    .xml(.metalink(problem)), line: line > 0 ? line : nil,
                    excerpt: Excerpt.around(0, in: Array(text.utf8))))
        }
        files = reader.files
    }
}

/// A delegate that reads the elements of a Metalink document.
private final class MetalinkReader: NSObject, XMLParserDelegate {
    private(set) var files: [Metalink.File] = []
    /// The first problem, and the text that has it.
    var problem: (String, String)?

    /// The names of the open elements; those that are not of Metalink are empty.
    private var path: [String] = []
    /// Those of the element that began last, of which leaves have their own.
    private var attributes: [String: String] = [:]
    private var text = ""
    private var file = Draft()

    private static let namespace = "urn:ietf:params:xml:ns:metalink"

    /// The contents of a file so far.
    private struct Draft {
        var name = ""
        var size: Int64?
        var digests: [ContentDigest] = []
        /// The lists of pieces, the last of which may be open.
        var pieces: [Pieces] = []
        var urls: [(priority: Int64, url: URL)] = []
    }

    private struct Pieces {
        /// `nil` if it is not supported.
        var algorithm: ContentDigest.Algorithm?
        var length: Int64
        var values: [Data] = []
    }

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?,
        qualifiedName qName: String?, attributes attributeDict: [String: String]
    ) {
        let name = elementName.split(at: ":").last.map(String.init) ?? ""
        let isMetalink = namespaceURI?.utf8.elementsEqual(Self.namespace.utf8) == true
        path.append(isMetalink ? name : "")
        (attributes, text) = (attributeDict, "")
        do {
            try begin()
        } catch {
            stop(error, parser)
        }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        text += string
    }

    func parser(_ parser: XMLParser, foundCDATA CDATABlock: Data) {
        text += String(decoding: CDATABlock, as: UTF8.self)
    }

    func parser(
        _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName qName: String?
    ) {
        do {
            try end()
        } catch {
            stop(error, parser)
        }
        if !path.isEmpty { path.removeLast() }
        text = ""
    }

    private func stop(_ error: Problem, _ parser: XMLParser) {
        if problem == nil { problem = (error.description, error.text ?? text) }
        parser.abortParsing()
    }

    private struct Problem: Error {
        var description: String
        var text: String?

        init(_ description: String, _ text: String? = nil) {
            (self.description, self.text) = (description, text)
        }
    }

    private func begin() throws(Problem) {
        switch path {
        case ["metalink"]: break
        case _ where path.count == 1: throw Problem("no element metalink of RFC 5854", "")
        case ["metalink", "file"]:
            guard files.count < Metalink.maximumFiles else {
                throw Problem("more than \(Metalink.maximumFiles) files", "")
            }
            let name = attributes["name"] ?? ""
            guard Self.isRelativePath(name) else { throw Problem("a name that is not a relative path", name) }
            guard !name.isNameOfUnfinishedDownload else { throw Problem("the name of an unfinished download", name) }
            file = Draft(name: name)
        case ["metalink", "file", "pieces"]:
            guard file.pieces.count < Metalink.maximumDigests else { throw Problem("too many lists of pieces", "") }
            let length = attributes["length"] ?? ""
            guard let count = Self.number(length), count > 0 else { throw Problem("a wrong length of pieces", length) }
            file.pieces.append(Pieces(algorithm: Self.algorithm(attributes["type"]), length: count))
        default: break
        }
    }

    private func end() throws(Problem) {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        switch path {
        case ["metalink", "file", "size"]:
            guard file.size == nil, let size = Self.number(text) else { throw Problem("a wrong size", text) }
            file.size = size
        case ["metalink", "file", "hash"]:
            guard let algorithm = Self.algorithm(attributes["type"]) else { break }
            guard file.digests.count < Metalink.maximumDigests else { throw Problem("too many digests", text) }
            file.digests.append(try Self.digest(text, algorithm))
        case ["metalink", "file", "pieces", "hash"]:
            // A copy of the values would make each addition copy them.
            guard let algorithm = file.pieces.last.flatMap({ $0.algorithm }) else { break }
            file.pieces[file.pieces.count - 1].values.append(try Self.digest(text, algorithm).value)
        case ["metalink", "file", "url"]:
            let priority = attributes["priority"].map { Self.number($0) } ?? Self.lowestPriority
            guard let priority, 1...Self.lowestPriority ~= priority else { throw Problem("a wrong priority") }
            if let url = try Self.url(text) { file.urls.append((priority, url)) }
            guard file.urls.count <= Metalink.maximumURLs else {
                throw Problem("a file with more than \(Metalink.maximumURLs) URLs", file.name)
            }
        case ["metalink", "file"]: files.append(try makeFile())
        default: break
        }
    }

    private func makeFile() throws(Problem) -> Metalink.File {
        guard !file.urls.isEmpty else { throw Problem("a file without an http or https URL", file.name) }
        var pieceDigests: PieceDigests?
        for pieces in file.pieces {
            guard let algorithm = pieces.algorithm, let size = file.size else { continue }
            do {
                let digests = try PieceDigests(
                    algorithm, pieceLength: pieces.length, totalBytes: size, values: pieces.values)
                pieceDigests = pieceDigests ?? digests
            } catch {
                throw Problem("a list of pieces that does not fit its size", file.name)
            }
        }
        // Sorting is stable.
        let urls = file.urls.sorted { $0.priority < $1.priority }.map(\.url)
        return Metalink.File(
            name: file.name, size: file.size, digests: file.digests, pieceDigests: pieceDigests, urls: urls)
    }

    // MARK: Values

    /// The priority of a URL without the attribute (RFC 5854 §4.2.16.1).
    private static let lowestPriority: Int64 = 999_999

    /// Returns a decimal number; `nil` for another text, such as one with a sign, and for a number that is too large.
    private static func number(_ text: String) -> Int64? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
    }

    private static func algorithm(_ name: String?) -> ContentDigest.Algorithm? {
        // A long text would take long to compare.
        name.flatMap { $0.utf8.count < 32 ? ContentDigest.Algorithm(rawValue: $0.lowercased()) : nil }
    }

    private static func digest(_ text: String, _ algorithm: ContentDigest.Algorithm) throws(Problem) -> ContentDigest {
        guard text.utf8.count == 2 * algorithm.byteCount, let digest = ContentDigest("\(algorithm.rawValue):\(text)")
        else { throw Problem("a malformed digest", text) }
        return digest
    }

    /// Returns an http or https URL; `nil` for one with another scheme.
    private static func url(_ text: String) throws(Problem) -> URL? {
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased() else {
            throw Problem("a malformed URL", text)
        }
        guard ["http", "https"].contains(scheme) else { return nil }
        guard url.host()?.isEmpty == false else { throw Problem("a malformed URL", text) }
        return url
    }

    private static func isRelativePath(_ name: String) -> Bool {
        name.unicodeScalars.allSatisfy { !$0.hidesName && $0 != "\\" }
            && name.split(at: "/", omittingEmptySubsequences: false).allSatisfy {
                $0.utf8.count <= 255 && !["", ".", ".."].contains($0)
            }
    }
}
