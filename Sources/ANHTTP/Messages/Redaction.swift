// SPDX-License-Identifier: MIT

package import FoundationEssentials
package import HTTPTypes

/// The rules by which secrets are replaced by `…` in what is printed or recorded: a command for curl, an HTTP archive.
///
/// | place | what is hidden |
/// |---|---|
/// | URLs and references, also in fields and errors | user information, fragments, and the values of the query; path parameters with a secret name |
/// | header fields | the values of fields with a secret name; of `Authorization` a scheme before a space is kept |
/// | cookies | all values |
/// | JSON and JSON5, at any depth, in UTF-8, UTF-16 or UTF-32, also if it is cut off | the values of members with a secret name, and all within them: numbers become 0; Booleans, `null`, and names of up to 24 letters and underscores are kept, other names numbered; of URLs the values of the query with a secret name |
/// | forms, also multipart | the values of fields with a secret name |
///
/// A name is secret if one of its words, or several words in succession, are among the ``names``: `access_token`,
/// `accessToken`, `X-Access-Token` and `access-tokens` are, by the word `token`. A word that ends with `apikey`, `passwd`,
/// `password`, `secret` or `token`, such as `refreshtoken`, is secret if that ending is among them. Other text, XML, and bytes that are not
/// text are not examined. Neither `token_type` nor numbers of tokens, such as `total_tokens`, are secret. A body in the
/// content coding `gzip` or `deflate` is recorded decompressed, and of one in another coding nothing.
public struct Redaction: Hashable, Sendable {
    /// The secret names, in lower case and without separators; by default those of ``standard``.
    public var names: Set<String>
    /// Whether the values of all query parameters are hidden, or only those with a secret name; `true` by default.
    public var hidesQueryValues = true
    /// Whether anything is hidden.
    private var isOn = true

    /// Creates rules with secret names.
    ///
    /// - Parameter names: The secret names, in lower case and without separators, such as `apikey`.
    public init(names: Set<String>) {
        self.names = names
    }

    /// The default rules: passwords, tokens, keys, signatures, cookies and sessions, and the values of queries.
    public static let standard = Redaction(names: [
        "accesskey", "accountkey", "apikey", "appkey", "applicationkey", "assertion", "auth", "authentication",
        "authkey", "authorization", "bearer", "clientkey", "consumerkey", "cookie", "credential", "csrf", "cvc",
        "cvv", "encryptionkey", "functionkey", "functionskey", "jsessionid", "jwt", "licensekey", "masterkey",
        "otp", "passcode", "passphrase", "passwd", "password", "pin", "privatekey", "pwd", "sas", "secret",
        "session", "sessionid", "sharedkey", "sid", "sig", "signature", "signingkey", "ssn", "subscriptionkey",
        "token", "userkey", "xsrf",
    ])
    /// The rules of ``standard``, but of a query only the values with a secret name are hidden: for what is sent again or
    /// compared with other requests.
    public static let byName: Redaction = {
        var rules = Redaction.standard
        rules.hidesQueryValues = false
        return rules
    }()
    /// Hides nothing.
    public static let none: Redaction = {
        var rules = Redaction(names: [])
        rules.isOn = false
        return rules
    }()

    /// The text in place of a secret.
    package static let mark = "…"

    // MARK: Names

    /// Returns whether values with a name are hidden.
    package func hides(_ name: String) -> Bool {
        guard isOn else { return false }
        // No program chooses such a name, which would take long to look up.
        guard !name.utf8.hasLongCombiningRun else { return true }
        let words = Self.words(of: name)
        // RFC 6749 §7.1.
        if words == ["token", "type"] { return false }
        for start in words.indices {
            var joined = ""
            for word in words[start...].prefix(3) {
                joined += word
                if isSecret(joined) { return true }
            }
        }
        return false
    }

    /// Whether a number with a name says how many tokens there are, as those of language models.
    private func isCount(_ name: String) -> Bool {
        let words = Self.words(of: name)
        return words.count > 1 && words.last == "tokens" && !hides(words.dropLast().joined(separator: "_"))
    }

    /// Whether a word is secret, also in the plural and with a number at its end, as in `passwords2`.
    private func isSecret(_ word: String) -> Bool {
        let end = word.unicodeScalars.lastIndex { !("0"..."9").contains($0) }
        let name = end.map { String(word.unicodeScalars[...$0]) } ?? ""
        return [word, name, name.hasSuffix("s") ? String(name.dropLast()) : name].contains { word in
            names.contains(word) || Self.endings.contains { word.hasSuffix($0) && names.contains($0) }
        }
    }

    /// The names with which words end that are written together.
    private static let endings = ["apikey", "passwd", "password", "secret", "token"]

    /// The words of a name in lower case: `accessToken`, `access_token` and `Access-Token` have two, and `AWSToken`.
    private static func words(of name: String) -> [String] {
        let characters = Array(name)
        var words = [""]
        for (index, character) in characters.enumerated() {
            guard character.isLetter || character.isNumber else {
                words.append("")
                continue
            }
            if index > 0, character.isUppercase,
                !characters[index - 1].isUppercase || characters[(index + 1)...].first?.isLowercase == true
            {
                words.append("")
            }
            words[words.count - 1] += character.lowercased()
        }
        return words.filter { !$0.isEmpty }
    }

    // MARK: URLs and text

    /// Returns a URL or a reference without its secrets.
    package func url(_ text: String) -> String {
        guard isOn else { return text }
        // By scalars: a character may be a delimiter with a combining mark.
        var rest = text.unicodeScalars.prefix { $0 != "#" }
        var query = ""
        if let mark = rest.firstIndex(where: { $0 == "?" }) {
            query = "?" + pairs(String(rest[mark...].dropFirst()), separator: "&", hidesAll: hidesQueryValues)
            rest = rest[..<mark]
        }
        var result = ""
        // A URL without an authority, whose user information a program may have meant as such.
        if let colon = rest.firstIndex(where: { $0 == ":" }), !rest[colon...].starts(with: "://".unicodeScalars),
            ["http", "https", "ws", "wss"].contains(String(rest[..<colon]).lowercased()),
            let sign = rest.lastIndex(where: { $0 == "@" })
        {
            result = String(rest[...colon]) + Self.mark
            rest = rest[sign...]
        }
        // A list of URLs has several authorities.
        while let slashes = rest.firstRange(of: "//".unicodeScalars) {
            let authority = rest[slashes.upperBound...].prefix { $0 != "/" }
            result += parameters(rest[..<slashes.lowerBound]) + "//"
            if let sign = authority.lastIndex(where: { $0 == "@" }) {
                result += Self.mark + String(authority[sign...])
            } else {
                result += String(authority)
            }
            rest = rest[authority.endIndex...]
        }
        return result + parameters(rest) + query
    }

    /// Returns a path without its secret parameters.
    package func path(_ text: String) -> String { parameters(text.unicodeScalars[...]) }

    private func parameters(_ path: Substring.UnicodeScalarView) -> String {
        let segments = path.split(omittingEmptySubsequences: false) { $0 == ";" }
        var result = String(segments.first ?? "".unicodeScalars[...])
        for segment in segments.dropFirst() {
            let parameter = segment.prefix { $0 != "/" }
            result += ";" + pairs(String(parameter), separator: ";", hidesAll: false)
            result += String(segment[parameter.endIndex...])
        }
        return result
    }

    /// Returns a text, such as a description of an error, without the secrets of the URLs and references in it.
    package func text(_ text: String) -> String {
        guard isOn else { return text }
        var result = ""
        var rest = text.unicodeScalars[...]
        var separator: Unicode.Scalar?
        while !rest.isEmpty {
            let word = rest.prefix { !" <>\"'“”".unicodeScalars.contains($0) }
            rest = rest[word.endIndex...]
            // As in a `Link` field, and in texts (RFC 3986 appendix C).
            let isBetweenBrackets = separator == "<" && rest.first == ">"
            result += isBetweenBrackets || Self.isReference(word) ? url(String(word)) : parameters(word)
            separator = rest.popFirst()
            if let separator { result.unicodeScalars.append(separator) }
        }
        return result
    }

    /// Whether a word of a text is a URL or a reference: with an authority, an absolute path, or a query with a value.
    private static func isReference(_ word: Substring.UnicodeScalarView) -> Bool {
        if word.first == "/" || word.first == "?" || word.firstRange(of: "//".unicodeScalars) != nil { return true }
        // An encoded word (RFC 2047) contains the same delimiters.
        let isEncoded = word.starts(with: "=?".unicodeScalars) && word.reversed().starts(with: "=?".unicodeScalars)
        return !isEncoded && word.firstIndex { $0 == "?" }.map { word[$0...].contains("=") } ?? false
    }

    /// Returns the pairs of a query or form without their secret values.
    package func pairs(_ text: String, separator: Unicode.Scalar, hidesAll: Bool) -> String {
        guard isOn else { return text }
        return text.unicodeScalars.split(separator: separator, omittingEmptySubsequences: false).map { pair in
            guard let sign = pair.firstIndex(where: { $0 == "=" }) else {
                // A text without a name may be the secret itself.
                return hidesAll && !pair.isEmpty ? Self.mark : String(pair).withoutUserInformation
            }
            let name = Self.decoded(Substring(pair[..<sign]))
            // In a query, `key` is often the name of an API key.
            let isHidden = hidesAll || hides(name) || name == "key" && names.contains("apikey")
            return isHidden ? String(pair[...sign]) + Self.mark : String(pair).withoutUserInformation
        }.joined(separator: String(separator))
    }

    /// Returns the name of a query or form, percent-decoded.
    private static func decoded(_ name: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = name.utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = UInt8(String(Substring(rest.prefix(2))), radix: 16) {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Header fields

    /// Returns header fields without their secret values.
    package func fields(_ fields: HTTPFields) -> HTTPFields {
        guard isOn else { return fields }
        return HTTPFields(fields.map { HTTPField(name: $0.name, value: value($0.value, of: $0.name.rawName)) })
    }

    /// Returns the value of a header field without its secrets.
    package func value(_ value: String, of name: String) -> String {
        guard isOn, !value.isEmpty else { return value }
        switch name.lowercased() {
        case "authorization", "proxy-authorization":
            // Other text before a space may be a part of the secret (RFC 9110 §11.4).
            var scanner = HeaderScanner(value)
            let scheme = scanner.takeToken()
            return !scheme.isEmpty && scanner.take(UInt8(ascii: " ")) ? "\(scheme) \(Self.mark)" : Self.mark
        case "cookie":
            return value.split(at: ";").map { cookie($0) }.joined(separator: ";")
        case "set-cookie":
            let parts = value.split(at: ";", maxSplits: 1)
            return cookie(parts.first ?? "") + (parts.count > 1 ? ";" + parts[1] : "")
        case "location", "content-location", "referer":
            return url(value)
        case let name:
            return hides(name) ? Self.mark : text(value)
        }
    }

    private func cookie(_ pair: Substring) -> String {
        pair.unicodeScalars.firstIndex(of: "=").map { pair[...$0] + Self.mark } ?? Self.mark
    }

    // MARK: Bodies

    /// Returns a body in content codings without its secrets, which can be found only if the body can be decoded.
    ///
    /// - Parameter decode: Returns the content of bytes in a coding, or the first part of it; `nil` if they cannot be
    ///   decoded.
    package func body(
        _ body: Data, contentType: String?, codings: [String],
        decode: (_ bytes: [UInt8], _ coding: String) -> (bytes: [UInt8], isComplete: Bool)?
    ) -> RedactedBody {
        guard isOn, !body.isEmpty, let coding = codings.first else {
            return .kept(self.body(body, contentType: contentType))
        }
        guard codings.count == 1, let content = decode([UInt8](body), coding) else { return .hidden(codings) }
        return .decoded(self.body(Data(content.bytes), contentType: contentType), isComplete: content.isComplete)
    }

    /// Returns a body without its secrets, as far as its type is known or it looks like JSON.
    package func body(_ body: Data, contentType: String?) -> Data {
        self.body(body, contentType: contentType, depth: 0)
    }

    private func body(_ body: Data, contentType: String?, depth: Int) -> Data {
        // A part may have parts itself, which a server could nest deeper than the stack.
        guard depth < 8 else { return Data(Self.mark.utf8) }
        guard isOn, !body.isEmpty else { return body }
        let type = HeaderParameters(contentType ?? "").value.lowercased()
        if type == "application/x-www-form-urlencoded" { return form(body) }
        if type.utf8.starts(with: "multipart/".utf8), let boundary = HeaderParameters(contentType ?? "")["boundary"] {
            return multipart(body, boundary: boundary, depth: depth)
        }
        if let text = WideText(body) {
            let bytes = Array(text.content.utf8)
            return type.contains("json") || Self.looksLikeJSON(bytes) ? text.encoded(json(bytes)) : body
        }
        let bytes = [UInt8](body)
        return type.contains("json") || Self.looksLikeJSON(bytes) ? Data(json(bytes)) : body
    }

    /// Whether a text begins as an object or array, possibly after a byte order mark, or after the characters by which servers
    /// keep others from running it as a script. A record separator begins each text of a sequence (RFC 7464).
    private static func looksLikeJSON(_ text: [UInt8]) -> Bool {
        let content = text.dropFirst(text.starts(with: "\u{FEFF}".utf8) ? 3 : 0)
        let first = content.first { !isBlank($0) && $0 != 0x1E }
        return first == UInt8(ascii: "{") || first == UInt8(ascii: "[") || content.starts(with: ")]}'".utf8)
    }

    private func form(_ body: Data) -> Data {
        if let text = String(validating: body, as: UTF8.self) {
            return Data(pairs(text, separator: "&", hidesAll: false).utf8)
        }
        // The separators are the same in other encodings of forms, whose bytes stay.
        let text = String(String.UnicodeScalarView(body.map { UnicodeScalar($0) }))
        let result = pairs(text, separator: "&", hidesAll: false)
        return Data(result.unicodeScalars.flatMap { $0.value < 0x100 ? [UInt8($0.value)] : Array(String($0).utf8) })
    }

    private func multipart(_ body: Data, boundary: String, depth: Int) -> Data {
        // RFC 2046 §5.1.1 permits no other, and the search for a long one would be slow.
        guard 1...70 ~= boundary.utf8.count else { return Data(Self.mark.utf8) }
        let delimiter = Data("--\(boundary)".utf8)
        var result = Data()
        var rest = body[...]
        while let start = Self.firstDelimiter(delimiter, in: rest) {
            result += rest[..<start.upperBound]
            rest = rest[start.upperBound...]
            // After the last delimiter, there is no part.
            guard !rest.starts(with: "--".utf8) else { break }
            let part = rest[..<(Self.firstDelimiter(delimiter, in: rest)?.lowerBound ?? rest.endIndex)]
            guard let end = Self.endOfHead(part) else {
                result += Data("\r\n\(Self.mark)\r\n".utf8)
                rest = rest[part.endIndex...]
                continue
            }
            let (name, type) = Self.partFields(part[..<end])
            let isHidden = name.map(hides) ?? false
            result += part[..<end]
            result +=
                isHidden
                ? Data("\(Self.mark)\r\n".utf8) : self.body(Data(part[end...]), contentType: type, depth: depth + 1)
            rest = rest[part.endIndex...]
        }
        return result + rest
    }

    /// The first delimiter that is a line (RFC 2046 §5.1.1): after the beginning or a line end, and before another one,
    /// blanks, or the dashes of the last delimiter.
    private static func firstDelimiter(_ delimiter: Data, in data: Data) -> Range<Data.Index>? {
        var rest = data
        while let range = rest.firstRange(of: delimiter) {
            let beginsLine = range.lowerBound == data.startIndex || data[range.lowerBound - 1] == UInt8(ascii: "\n")
            let next = data[range.upperBound...]
            if beginsLine, next.first.map(isBlank) ?? true || next.starts(with: "--".utf8) { return range }
            rest = data[range.upperBound...]
        }
        return nil
    }

    /// The index after the empty line that ends the head of a part, whose lines may end without a carriage return.
    private static func endOfHead(_ part: Data) -> Data.Index? {
        let ends = ["\r\n\r\n", "\n\n", "\n\r\n"].compactMap { part.firstRange(of: Data($0.utf8))?.upperBound }
        return ends.min()
    }

    /// The name of a form's field, and its type, from the head of its part (RFC 7578 §4.2).
    private static func partFields(_ head: Data) -> (name: String?, type: String?) {
        var lines: [String] = []
        for line in String(decoding: head, as: UTF8.self).split(whereSeparator: \.isNewline) {
            // A line that begins with a blank continues the one before (RFC 5322 §2.2.3).
            if line.first == " " || line.first == "\t", !lines.isEmpty {
                lines[lines.count - 1] += line
            } else {
                lines.append(String(line))
            }
        }
        func value(_ name: String) -> String? {
            lines.first { $0.lowercased().utf8.starts(with: "\(name):".utf8) }
                .map { String($0.unicodeScalars.dropFirst(name.utf8.count + 1)) }
        }
        return (value("content-disposition").flatMap { HeaderParameters($0)["name"] }, value("content-type"))
    }

    /// Replaces the values of members with a secret name, so that each keeps its type: a program still decodes them. The
    /// text may be cut off, and may be several values, also of JSON5.
    ///
    /// - Parameter isComment: Whether the text is the content of a comment, in which there are no others.
    private func json(_ text: [UInt8], isComment: Bool = false) -> [UInt8] {
        var result: [UInt8] = []
        var index = 0
        /// The number of open containers of the hidden value, which ends only before a delimiter outside of them: what is
        /// no JSON may follow its first token. `nil` outside of a hidden value.
        var depth: Int?
        /// The last string and the last literal before a colon, each of which may be the name of the member.
        var (string, literal): (ArraySlice<UInt8>?, ArraySlice<UInt8>?)
        var hiddenNames = 0
        /// Whether the hidden value may be a number of tokens.
        var mayCount = false
        var mayHaveComments = !isComment
        /// Whether a value or a name may begin, perhaps with an apostrophe: not after the end of a container or a word.
        var mayBegin = true
        while index < text.count {
            var end = index + 1
            switch text[index] {
            case UInt8(ascii: ":"):
                result.append(text[index])
                mayBegin = true
                // The order of members with hidden values says nothing of their names.
                if depth == nil, [string, literal].contains(where: { $0.map { hides(Self.string($0)) } ?? false }) {
                    (depth, hiddenNames) = (0, 0)
                    mayCount = [string, literal].contains { $0.map { isCount(Self.string($0)) } ?? false }
                }
                (string, literal) = (nil, nil)
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                result.append(text[index])
                depth = depth.map { $0 + 1 }
                (string, literal, mayBegin) = (nil, nil, true)
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                result.append(text[index])
                depth = depth.flatMap { $0 > 0 ? $0 - 1 : nil }
                (string, literal, mayBegin) = (nil, nil, false)
            case UInt8(ascii: ","):
                result.append(text[index])
                if depth == 0 { depth = nil }
                (string, literal, mayBegin) = (nil, nil, true)
            case let byte where byte == 0x1E || Self.isBlank(byte):
                result.append(byte)
            case UInt8(ascii: "/") where mayHaveComments && Self.beginsComment(text[index...]):
                guard let content = Self.contentOfComment(text, from: index) else {
                    // It is no comment, and nor is what follows.
                    mayHaveComments = false
                    continue
                }
                end = content.upperBound + (text[index + 1] == UInt8(ascii: "*") ? 2 : 0)
                // One in a hidden value is left out.
                guard depth == nil else { break }
                result += text[index..<content.lowerBound] + json(Array(text[content]), isComment: true)
                result += text[content.upperBound..<end]
            default:
                var endOfString: Int?
                if text[index] == UInt8(ascii: "\"") || mayBegin || depth != nil {
                    endOfString = Self.endOfString(text, from: index, isHidden: depth != nil)
                }
                if let endOfString {
                    end = endOfString
                } else {
                    while end < text.count, !Self.endsLiteral(text[end...]) { end += 1 }
                }
                let (token, isString) = (text[index..<end], endOfString != nil)
                if isString { string = token } else { literal = token }
                // After a word that is no value, an apostrophe begins no string.
                if !isString, Self.hidden(token) == Self.hiddenText { mayBegin = false }
                let isName = text[end...].first { !Self.isBlank($0) } == UInt8(ascii: ":")
                switch depth {
                // A text in apostrophes may be a message that quotes JSON.
                case nil where isString && token.first == UInt8(ascii: "'") && token.contains(UInt8(ascii: "{")):
                    result += token.prefix(1) + json(Array(token.dropFirst().dropLast())) + token.suffix(1)
                case nil: result += isString ? withoutSecretQuery(token) : token
                case let depth? where depth > 0 && isName:
                    if Self.isPlain(isString ? token.dropFirst().dropLast() : token) {
                        result += token
                    } else {
                        // A dictionary keeps as many members.
                        hiddenNames += 1
                        result += "\"\(Self.mark)\(hiddenNames)\"".utf8
                    }
                case 0? where mayCount && !isString && token.allSatisfy { 0x30...0x39 ~= $0 }: result += token
                case _?: result += isString ? Self.hiddenText : Self.hidden(token)
                }
            }
            index = end
        }
        return result
    }

    /// Returns a string in which the secret values of a URL's query are hidden, as in links to further pages.
    private func withoutSecretQuery(_ string: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let text = string.dropFirst()
        guard text.starts(with: "http".utf8), let mark = text.firstIndex(of: UInt8(ascii: "?")),
            text[..<mark].firstRange(of: "://".utf8) != nil || text[..<mark].firstRange(of: #":\/\/"#.utf8) != nil
        else { return string }
        let close = string.last == string.first ? string.endIndex - 1 : string.endIndex
        let end = string[mark..<close].firstIndex(of: UInt8(ascii: "#")) ?? close
        let query = pairs(String(decoding: string[(mark + 1)..<end], as: UTF8.self), separator: "&", hidesAll: false)
        return string[...mark] + Array(query.utf8) + string[end...]
    }

    /// Whether a name within a hidden value looks like one of the program, and not like the identifier of a session.
    private static func isPlain(_ name: ArraySlice<UInt8>) -> Bool {
        name.count <= 24
            && name.allSatisfy { UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 | 0x20 || $0 == UInt8(ascii: "_") }
    }

    private static let hiddenText = Array("\"\(mark)\"".utf8)[...]

    /// Returns what replaces a literal, which need not be valid.
    private static func hidden(_ literal: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let text = String(decoding: literal, as: UTF8.self)
        if ["true", "false", "null"].contains(text) { return literal }
        let isDecimal = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
        let magnitude = text.first == "+" || text.first == "-" ? text.dropFirst() : text[...]
        let isNumber =
            isDecimal || ["Infinity", "NaN"].contains(magnitude)
            || magnitude.lowercased().hasPrefix("0x") && magnitude.dropFirst(2).allSatisfy(\.isHexDigit)
        return isNumber ? [UInt8(ascii: "0")] : hiddenText
    }

    /// Whether a literal ends before a text.
    private static func endsLiteral(_ text: ArraySlice<UInt8>) -> Bool {
        guard let byte = text.first else { return true }
        return "{}[],:\"".utf8.contains(byte) || byte == 0x1E || isBlank(byte) || beginsComment(text)
    }

    private static func beginsComment(_ text: ArraySlice<UInt8>) -> Bool {
        text.starts(with: "//".utf8) || text.starts(with: "/*".utf8)
    }

    /// The content of the comment that begins at an index, without its delimiters; `nil` if it does not end.
    private static func contentOfComment(_ text: [UInt8], from start: Int) -> Range<Int>? {
        let content = text[(start + 2)...]
        guard text[start + 1] == UInt8(ascii: "*") else {
            let end = content.firstIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
            return content.startIndex..<(end ?? content.endIndex)
        }
        return content.firstRange(of: "*/".utf8).map { content.startIndex..<$0.lowerBound }
    }

    /// The text of a name, which need not be quoted in JSON5.
    private static func string(_ name: ArraySlice<UInt8>) -> String {
        let quote = [UInt8(ascii: "\"")]
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        let literal = name.first.map(isQuote) ?? false ? Data(name) : Data(quote + name + quote)
        return (try? decoder.decode(String.self, from: literal)) ?? String(decoding: name, as: UTF8.self)
    }

    private static func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }

    /// The index after the string that begins at an index; `nil` if none does. A text that is cut off may end in one in
    /// double quotes. An apostrophe without another one after it begins one in a hidden value only: more is hidden then.
    private static func endOfString(_ text: [UInt8], from start: Int, isHidden: Bool) -> Int? {
        let quote = text[start]
        guard isQuote(quote) else { return nil }
        var index = start + 1
        while index < text.count, text[index] != quote {
            index += text[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard index < text.count else { return isHidden || quote == UInt8(ascii: "\"") ? text.count : nil }
        return index + 1
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || (0x09...0x0D).contains(byte)
    }
}

/// A text in UTF-16 or UTF-32, as which it is recognized by the zero bytes of its first character, or by a byte order mark
/// (RFC 4627 §3).
private struct WideText {
    let content: String
    private let width: Int
    private let isLittleEndian: Bool

    /// Reads a text, which may be cut off; `nil` if it is not wide.
    init?(_ data: Data) {
        guard JSONNumbers.isWide(data) else { return nil }
        switch data.prefix(4).map({ $0 == 0 || $0 >= 0xFE ? $0 : 1 }) {
        case [0, 0, 0, 1], [0, 0, 0xFE, 0xFF]: (width, isLittleEndian) = (4, false)
        case [1, 0, 0, 0], [0xFF, 0xFE, 0, 0]: (width, isLittleEndian) = (4, true)
        case let start where [[0, 1], [0xFE, 0xFF]].contains(start.prefix(2)): (width, isLittleEndian) = (2, false)
        case let start where [[1, 0], [0xFF, 0xFE]].contains(start.prefix(2)): (width, isLittleEndian) = (2, true)
        default: return nil
        }
        let (bytes, width, isLittleEndian) = ([UInt8](data), width, isLittleEndian)
        let units = stride(from: 0, to: bytes.count - width + 1, by: width).map { start in
            let unit = bytes[start..<start + width]
            return (isLittleEndian ? unit.reversed() : Array(unit)).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        content =
            width == 4
            ? String(decoding: units, as: UTF32.self)
            : String(decoding: units.map(UInt16.init(truncatingIfNeeded:)), as: UTF16.self)
    }

    /// Returns another text in the same encoding.
    func encoded(_ text: [UInt8]) -> Data {
        let text = String(decoding: text, as: UTF8.self)
        let units = width == 4 ? text.unicodeScalars.map(\.value) : text.utf16.map(UInt32.init)
        return Data(
            units.flatMap { unit in
                let bytes = (0..<width).map { UInt8(truncatingIfNeeded: unit >> ($0 * 8)) }
                return isLittleEndian ? bytes : bytes.reversed()
            })
    }
}

/// A body without its secrets.
package enum RedactedBody: Hashable, Sendable {
    /// The body in the content codings that it has, if any: nothing is hidden then.
    case kept(Data)
    /// The content of a body that had a coding, or the first part of it.
    case decoded(Data, isComplete: Bool)
    /// Nothing of a body that cannot be decoded, with the names of its codings.
    case hidden([String])

    /// The bytes to show.
    package var bytes: Data {
        switch self {
        case .kept(let bytes), .decoded(let bytes, _): bytes
        case .hidden: Data(Redaction.mark.utf8)
        }
    }

    /// What the bytes lack if the first `count` bytes of a body were recorded; `nil` if nothing.
    package func comment(recording count: Int, of total: Int64) -> String? {
        switch self {
        case .kept: count < total ? "the first \(count) of \(total) bytes" : nil
        case .decoded(let bytes, let isComplete):
            isComplete ? nil : "the first \(bytes.count) bytes, after decompression"
        case .hidden(let codings): "a body in the coding \(codings.joined(separator: ", ")), which is not recorded"
        }
    }
}
