// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

extension HeaderParameters {
    /// The file name of a `Content-Disposition` field, from `filename*` (RFC 6266 §4.3) or, if that is not usable,
    /// `filename`.
    ///
    /// Only the last path component is returned, without control characters, line separators and characters that change
    /// the direction of text; `nil` without a usable name.
    var fileName: String? {
        self["filename*"].flatMap(Self.extended).flatMap(Self.safeName) ?? self["filename"].flatMap(Self.safeName)
    }

    /// Returns the last component of a path without control characters, line separators and characters that change the
    /// direction of text; `nil` if nothing usable is left.
    static func safeName(_ name: String) -> String? {
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? []
        let safe = String(String.UnicodeScalarView(last.filter { !$0.hidesName }))
        return ["", ".", ".."].contains(safe) || safe.isNameOfUnfinishedDownload ? nil : safe
    }

    /// Returns the text of an extended value such as `UTF-8''na%C3%AFve` (RFC 8187 §3.2); `nil` if it is malformed.
    private static func extended(_ value: String) -> String? {
        let pieces = value.split(at: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3, let encoding = TextEncoding(charset: String(pieces[0])) else { return nil }
        return Data(percentEncoded: pieces[2]).flatMap(encoding.decode)
    }
}

extension Unicode.Scalar {
    /// Whether the character could make a file name look like another one: it is a control character, a line separator, or
    /// changes the direction of text.
    package var hidesName: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        // Joiners, which are parts of emoji and of Persian words, are format characters, too.
        default: properties.isBidiControl
        }
    }
}

extension String {
    /// Whether a later durable download would take a file of this name for its record. The bytes are compared: with some
    /// characters before it, the dot is part of another character.
    package var isNameOfDownloadRecord: Bool { utf8.suffix(10).elementsEqual(".part.json".utf8) }

    /// Whether a later durable download would take a file of this name for its partial file or for its record.
    package var isNameOfUnfinishedDownload: Bool {
        utf8.suffix(5).elementsEqual(".part".utf8) || isNameOfDownloadRecord
    }
}

extension HTTPFields {
    /// The value and parameters of the first `Content-Type`; `nil` without that field.
    var contentTypeParameters: HeaderParameters? {
        first { $0.name == .contentType }.map { HeaderParameters($0.value) }
    }
}

extension ResponseHead {
    /// The charset parameter of the `Content-Type`, in lower case and without quotes; `nil` if absent or empty (RFC
    /// 9110 §8.3.2).
    package var charset: String? {
        guard let charset = headers.contentTypeParameters?["charset"] else { return nil }
        // Some servers send single quotes, which have no special meaning in HTTP.
        let quote = UInt8(ascii: "'")
        let isQuoted = charset.utf8.first == quote && charset.utf8.last == quote
        let name = isQuoted ? String(charset.unicodeScalars.dropFirst().dropLast()) : charset
        return name.isEmpty ? nil : name.lowercased()
    }
}

extension ResponseHead {
    /// A name for a file with the response's content: the one of `Content-Disposition` (RFC 6266), or else the last
    /// component of the URL's path, percent-decoded if that is UTF-8; `nil` if neither is usable.
    ///
    /// Of `Content-Disposition`, `filename*` takes precedence over `filename`. Only the last component after `/` or `\`
    /// is used, so that the name cannot lead to another directory, without control characters, line separators and
    /// characters that change the direction of text, which could hide the extension; an empty one, `.`, `..` and one that
    /// ends with `.part` or `.part.json`, as the files of unfinished durable downloads do, are not usable. The name may be
    /// that of an existing file, begin with a dot, or be longer than the file system permits.
    public var suggestedFilename: String? {
        let disposition = headers.first { $0.name == .contentDisposition }.map { HeaderParameters($0.value) }
        return disposition?.fileName ?? url.suggestedFilename
    }
}

extension URL {
    /// A name for a file with the content of the URL, if nothing else names it: ``ResponseHead/suggestedFilename`` without
    /// `Content-Disposition`. Unlike `lastPathComponent`, it cannot lead to another directory.
    public var suggestedFilename: String? {
        // Divided before it is decoded, because another component need not be UTF-8.
        let last = path(percentEncoded: true).split(at: "/").last ?? ""
        let decoded = Data(percentEncoded: last).flatMap { String(validating: $0, as: UTF8.self) }
        return HeaderParameters.safeName(decoded ?? String(last))
    }
}
