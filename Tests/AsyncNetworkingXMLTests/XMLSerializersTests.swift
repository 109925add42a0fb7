// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import AsyncNetworkingXML
import Foundation
import FoundationXML
import TestSupport
import Testing

@Suite struct XMLSerializersTests {
    private static let feed = "<rss><channel><title>A &amp; B</title><item n='1'/><item n='2'/></channel></rss>"

    @Test func `a document is returned as a tree`() throws {
        let document = try value(of: .xmlDocument, Self.feed).makeDocument()
        #expect(try document.nodes(forXPath: "/rss/channel/title").first?.stringValue == "A & B")
        #expect(try document.nodes(forXPath: "//item").count == 2)
    }

    @Test func `a document is parsed by events`() throws {
        let content = try value(of: .xmlParser, Self.feed)
        let recorder = Recorder()
        try content.parse(with: recorder)
        #expect(recorder.elements == ["rss", "channel", "title", "item", "item"])
        #expect(recorder.text == "A & B")
        // Any number of parsers can be created.
        let parser = content.makeParser()
        let second = Recorder()
        parser.delegate = second
        #expect(parser.parse())
        #expect(second.elements.count == 5)
    }

    @Test func `a session returns documents that can be sent to another task`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .data(Data(Self.feed.utf8), headers: ["Content-Type": "application/rss+xml"]) }
            let api = SessionManager(baseURL: server.url("/")) { $0.proxy = .none }
            let content = try await api.get("feed", as: .xmlDocument).value
            let count = try await Task.detached { try content.makeDocument().nodes(forXPath: "//item").count }.value
            #expect(count == 2)
            let parsed = try await api.get("feed", as: .xmlParser).value
            #expect(parsed.data == Data(Self.feed.utf8))
        }
    }

    @Test(
        arguments: [
            ("application/xml", nil), ("text/xml; charset=utf-8", nil), ("image/svg+xml", nil),
            ("text/html", "text/html"),
            (nil, "-"),
        ] as [(String?, String?)])
    func `the media types of XML are accepted`(type: String?, rejected: String?) {
        let error = failure { try value(of: .xmlDocument, Self.feed, type: type) }
        #expect(error?.rejection.map { $0.mediaType ?? "-" } == rejected)
        #expect((error == nil) == (rejected == nil))
    }

    @Test(
        arguments: [
            ("utf-8", Array("é".utf8)), ("iso-8859-1", [0xE9]), ("windows-1251", [0xE9]), ("shift_jis", [0x93, 0xFA]),
        ] as [(String, [UInt8])])
    func `the encoding is declared by the header or the document`(encoding: String, bytes: [UInt8]) throws {
        let expected = ["windows-1251": "й", "shift_jis": "日"][encoding] ?? "é"
        let declared = Data("<?xml version=\"1.0\" encoding=\"\(encoding)\"?><a>".utf8) + bytes + Data("</a>".utf8)
        #expect(try text(declared) == expected)
        let claimed = Data("<a>".utf8) + bytes + Data("</a>".utf8)
        #expect(try text(claimed, type: "text/xml; charset=\(encoding)") == expected)
        // The header overrides the declaration.
        let both = Data("<?xml version='1.0' encoding='koi8-r'?><a>".utf8) + bytes + Data("</a>".utf8)
        #expect(try text(both, type: "text/xml; charset=\(encoding)") == expected)
    }

    @Test(arguments: [String.Encoding.utf16BigEndian, .utf16LittleEndian, .utf16, .utf32BigEndian])
    func `UTF-16 and UTF-32 are decoded with and without a byte order mark`(encoding: String.Encoding) throws {
        let data = try #require("<a>é</a>".data(using: encoding))
        #expect(try text(data) == "é")
    }

    @Test func `an empty body is an error for a tree, nil for an optional, and accepted for events`() throws {
        let error = failure { try value(of: .xmlDocument, "") }
        guard case .emptyBody(200, _, _)? = error else { throw error ?? .url(.noHost("")) }
        #expect(try value(of: .optional(.xmlDocument), "") == nil)
        let content = try value(of: .xmlParser, "")
        #expect(xmlFailure { try content.parse(with: Recorder()) }?.reason == .xml(.unexpectedEnd))
        #expect(xmlFailure { try content.makeDocument().rootElement() as Any }?.reason == .xml(.unexpectedEnd))
    }

    // MARK: Malformed input

    @Test func `a truncated document is reported as such`() {
        let text = "<?xml version='1.0'?><!-- c --><a x='1'><b>text</b><![CDATA[y]]><?pi z?></a>"
        for end in text.utf8.indices.dropFirst() {
            let reason = xmlFailure { try value(of: .xmlDocument, String(text[..<end])) }?.reason
            guard end != text.endIndex else { continue }
            switch reason {
            case .xml(.unexpectedEnd), .xml(.malformed): break
            default: Issue.record("\(text[..<end]): \(String(describing: reason))")
            }
            // Between the children of the outermost element, only its end is missing.
            if text[..<end].hasSuffix(">"), text[..<end].contains("<a") { #expect(reason == .xml(.unexpectedEnd)) }
        }
        #expect(throws: Never.self) { try value(of: .xmlDocument, text) }
    }

    @Test(arguments: ["<a>", "<b>", "<a>1", "<a >", "<a", "<"])
    func `a document that is shorter than its first tag and the end of it is incomplete`(text: String) throws {
        let content = try XMLContent(Data(text.utf8))
        #expect(xmlFailure { try content.checkWellFormed() }?.reason == .xml(.unexpectedEnd))
        #expect(xmlFailure { try content.parse(with: Recorder()) }?.reason == .xml(.unexpectedEnd))
        #expect(xmlFailure { try content.makeDocument().rootElement() as Any }?.reason == .xml(.unexpectedEnd))
    }

    @Test(arguments: [
        "<a><b></a>", "<a>&undefined;</a>", "<a/><b/>", "text", "<a b=c/>", "<a><!-- -- --></a>", "<a>\u{0}</a>",
        "<a>]]></a>",
        "<a b='1' b='2'/>", "{}",
    ])
    func `a document that is not well-formed fails with the place`(text: String) throws {
        let failure = try #require(xmlFailure { try value(of: .xmlDocument, text) })
        switch failure.reason {
        case .xml(.malformed), .xml(.unexpectedEnd): break
        default: Issue.record("\(failure)")
        }
        #expect("\(SerializationError.xml(failure))".contains("Near “"))
    }

    @Test(
        .timeLimit(.minutes(1)),
        arguments: ["<a><!--B--></a>", "<a><!--B-></a>", "<!--B--><a/>", "<!DOCTYPE a [<!--B-->]><a/>", "<a/><!---B>"],
        ["--a", "<!--", "-"])
    func `hyphens in a comment are refused before they are parsed`(text: String, unit: String) throws {
        let body = String(repeating: unit, count: 1_000)
        let content = Data(text.split(separator: "B").joined(separator: body).utf8)
        #expect(xmlFailure { _ = try XMLContent(content) }?.reason == .xml(.malformed(code: 80)))
    }

    @Test func `bytes that are invalid in their encoding are rejected`() {
        let error = failure { try value(of: .xmlDocument, Data("<a>".utf8) + [0xFF] + Data("</a>".utf8)) }
        guard case .xml? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        let other = failure {
            try value(
                of: .xmlDocument, Data("<a>".utf8) + [0xFF, 0xFF] + Data("</a>".utf8), type: "a/x+xml; charset=gbk")
        }
        guard case .text(.invalidBytes(charset: "gbk"))? = other else {
            Issue.record("\(String(describing: other))")
            return
        }
    }

    @Test func `a delegate that aborts parsing causes an error`() throws {
        let content = try value(of: .xmlParser, Self.feed)
        #expect(xmlFailure { try content.parse(with: Recorder(stopsAt: "title")) }?.reason == .xml(.aborted))
    }

    @Test func `the error contains the line`() throws {
        #expect(xmlFailure { try value(of: .xmlDocument, "<!DOCTYPE a [\n\n<!ENTITY x 'y'>]><a/>") }?.line == 3)
        // libxml2 reports this error only after it has parsed a little more.
        let line = try #require(xmlFailure { try value(of: .xmlDocument, "<a>\n<b>\n</c>\n</a>") }?.line)
        #expect(3...4 ~= line)
    }

    @Test func `the excerpt of a malformed document begins 40 bytes before the error, and ends 40 bytes after it`()
        throws
    {
        let line = String(repeating: "0123456789", count: 10) + "</b>" + String(repeating: "abcdefghij", count: 10)
        let text = "<a>\n" + line
        let parser = XMLParser(data: Data(text.utf8))
        _ = parser.parse()
        try #require(parser.lineNumber == 2)
        let start = line.index(line.startIndex, offsetBy: parser.columnNumber - 1)
        let expected = "…" + line[..<start].suffix(40) + line[start...].prefix(40) + "…"
        #expect(xmlFailure { try value(of: .xmlDocument, text) }?.excerpt == expected)
    }

    // MARK: Hostile input

    /// Nine levels of ten entities each, which expand to a billion.
    private static let laughs: String = {
        let levels = (1...9).map { "<!ENTITY l\($0) \"\(String(repeating: "&l\($0 - 1);", count: 10))\">" }
        return "<!DOCTYPE l [<!ENTITY l0 \"lol\">\(levels.joined())]><l>&l9;</l>"
    }()

    private static let secret = "/etc/hostname"

    @Test(arguments: [
        laughs,
        "<!DOCTYPE a [<!ENTITY x SYSTEM \"file://\(secret)\">]><a>&x;</a>",
        "<!DOCTYPE a [<!ENTITY x PUBLIC \"p\" \"http://127.0.0.1:1/\">]><a>&x;</a>",
        "<!DOCTYPE a [<!ENTITY % p SYSTEM \"file://\(secret)\"> %p;]><a/>",
        "<!DOCTYPE a [<!ELEMENT a ANY><!ENTITY x 'y'>]><a/>",
        "<!DOCTYPE a [<!-- > ' ] --><?p ]> \" ?><!ENTITY x 'y'>]><a/>",
        // Text that resembles comments, in literals.
        "<!DOCTYPE a SYSTEM \"<!--\" [<!ENTITY x 'y'>]><a>&x;</a><!-- -->",
        "<!DOCTYPE a SYSTEM '[' [<!ELEMENT n ANY><?p \"<!--\"?><!ENTITY x 'y'>]><a>&x;</a><!-- -->",
        "<?xml version='1.0'?>\n<!-- <a> -->\n<!DOCTYPE\na\n[\n<!ENTITY\nx\n'y'>]><a/>",
    ])
    func `entities are rejected before they are expanded`(text: String) throws {
        #expect(xmlFailure { try value(of: .xmlDocument, text) }?.reason == .xml(.declaration("ENTITY")))
        #expect(xmlFailure { try value(of: .xmlParser, text) }?.reason == .xml(.declaration("ENTITY")))
        let wide = try #require(text.data(using: .utf16))
        #expect(xmlFailure { try value(of: .xmlDocument, wide) }?.reason == .xml(.declaration("ENTITY")))
        let declared = try #require(text.data(using: .utf16LittleEndian))
        #expect(
            xmlFailure { try value(of: .xmlParser, declared, type: "text/xml; charset=utf-16le") }?.reason
                == .xml(.declaration("ENTITY")))
    }

    @Test func `an encoding that could hide declarations is unknown`() {
        let error = failure {
            try value(of: .xmlDocument, "<?xml version='1.0' encoding='utf-7'?>+ADwAIQ-DOCTYPE")
        }
        guard case .text(.unknownCharset("utf-7"))? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    /// A document type with an entity and its use, for a parser that supports “utf-7” or UTF-16.
    private static let hidden = "+ADwAIQ-DOCTYPE a [+ADwAIQ-ENTITY x 'expanded'+AD4]+AD4<a>+ACY-x;</a>"
    private static let wide: [UInt8] = "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x 'expanded'>]><a>&x;</a>".utf8
        .flatMap { [$0, 0] }
    private static let mark = Data([0xEF, 0xBB, 0xBF])
    private static let far = String(repeating: " ", count: 2_000)

    private static let hiding: [(body: Data, charset: String?)] = [
        (mark + Data("<?xml version='1.0' encoding='UTF-7'?>\(hidden)".utf8), nil),
        (mark + mark + Data("<?xml version='1.0' encoding='UTF-7'?>\(hidden)".utf8), nil),
        (Data("<?xml version='1.0'\(far)encoding='UTF-7'?>\(hidden)".utf8), nil),
        (Data("<?xml version='1.0'\(far)encoding='UTF-7'?>\(hidden)".utf8), "utf-8"),
        (Data("<?xml version='1.0' encoding='UTF-7' >\(hidden)".utf8), nil),
        (Data(wide), "utf-8"), (mark + wide, nil), (mark + [0xFF, 0xFE] + wide, nil),
    ]

    @Test(arguments: hiding.indices)
    func `no encoding hides declarations from the inspection`(index: Int) throws {
        let (body, charset) = Self.hiding[index]
        let type = "text/xml" + (charset.map { "; charset=\($0)" } ?? "")
        #expect(failure { try value(of: .xmlDocument, body, type: type) } != nil)
        // The document for event-based parsing is not checked completely before it is parsed.
        guard let content = try? value(of: .xmlParser, body, type: type) else { return }
        let recorder = Recorder()
        #expect(throws: SerializationError.self) { try content.parse(with: recorder) }
        #expect(!recorder.text.contains("expanded"))
    }

    @Test func `default attributes, which each element would repeat, are rejected`() {
        let text = "<!DOCTYPE a [<!ATTLIST a x CDATA \"\(String(repeating: "y", count: 100_000))\">]><a/>"
        #expect(xmlFailure { try value(of: .xmlDocument, text) }?.reason == .xml(.declaration("ATTLIST")))
    }

    @Test func `a document type is accepted, but its external subset is not read`() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "an-xml-\(UUID()).dtd")
        try Data("<!ENTITY x \"secret\"><!ATTLIST a b CDATA \"secret\">".utf8).write(to: path)
        defer { try? FileManager.default.removeItem(at: path) }
        let type = "<!DOCTYPE a SYSTEM \"file://\(path.path())\" [<!ELEMENT a ANY>]>"
        let document = try value(of: .xmlDocument, type + "<a>text</a>").makeDocument(
            options: [.documentXInclude, .documentValidate, .nodeLoadExternalEntitiesAlways])
        #expect(document.rootElement()?.stringValue == "text")
        #expect(document.rootElement()?.attribute(forName: "b") == nil)
        // An undeclared entity is no error if the external subset may declare it.
        #expect(try text(Data((type + "<a>1&x;2</a>").utf8)) == "12")
    }

    @Test func `long nested elements and elements with very many attributes are rejected`() {
        let deep = String(repeating: "<a>", count: 700_000)
        #expect(xmlFailure { try value(of: .xmlDocument, deep) }?.reason == .xml(.tooDeep(limit: 256)))
        #expect(xmlFailure { try value(of: .xmlParser, deep) }?.reason == .xml(.tooDeep(limit: 256)))
        let wide = "<a " + (0..<30_000).map { "a\($0)='1'" }.joined(separator: " ") + "/>"
        #expect(xmlFailure { try value(of: .xmlDocument, wide) }?.reason == .xml(.tooManyAttributes(limit: 1_000)))
        let names = (0..<400).map { "xmlns:n\($0)='u'" }.joined(separator: " ")
        let scopes = String(repeating: "<a \(names)>", count: 3)
        #expect(xmlFailure { try value(of: .xmlDocument, scopes) }?.reason == .xml(.tooManyAttributes(limit: 1_000)))
        let siblings = "<a>" + String(repeating: "<a \(names)></a>", count: 3) + "</a>"
        #expect(xmlFailure { try value(of: .xmlDocument, siblings) } == nil)
        let brackets = String(repeating: "<", count: 2_000_000)
        #expect(xmlFailure { try value(of: .xmlDocument, brackets) } != nil)
        #expect(xmlFailure { try value(of: .xmlDocument, String(repeating: "[", count: 2_000_000)) } != nil)
    }

    // MARK: Input that crashes Foundation's parser

    @Test(arguments: [
        "<?foo?><a/>", "<a><?php?></a>", "<a/><?foo?>", "<!DOCTYPE a [<?foo?>]><a><?b?><?c?></a>", "<!----><?é?><a/>",
    ])
    func `a processing instruction without data has empty data`(text: String) throws {
        let content = try value(of: .xmlDocument, text)
        #expect(String(decoding: content.data, as: UTF8.self) == text.replacing("?>", with: " ?>"))
        let recorder = Recorder()
        try content.parse(with: recorder)
        #expect(recorder.instructions.allSatisfy { $0.data.isEmpty })
        #expect(recorder.instructions.count == text.split(separator: "?>").count - (text.hasSuffix("?>") ? 0 : 1))
        _ = try content.makeDocument().xmlString
    }

    @Test func `other processing instructions and similar text are unchanged`() throws {
        let text = "<?a b?><?c ?><x y='?>'><!--<?d?>--><![CDATA[<?e?>]]></x>"
        let content = try value(of: .xmlParser, text)
        #expect(content.data == Data(text.utf8))
        let recorder = Recorder()
        try content.parse(with: recorder)
        #expect(recorder.instructions.map(\.target) == ["a", "c"])
        #expect(recorder.instructions.map(\.data) == ["b", ""])
    }

    @Test(
        arguments: [
            [0x3C, 0x55, 0xF6, 0x01, 0xB0, 0x3E], Array("<a ".utf8) + [0xE9] + Array("='1'/>".utf8),
            Array("<?".utf8) + [0xFF] + Array(" b?><a/>".utf8),
            Array("<a>".utf8) + [0xED, 0xA0, 0x80] + Array("</a>".utf8),
            Array("<a>\u{1}</a>".utf8), Array("<a>\u{FFFE}</a>".utf8), Array("<a>\u{FFFF}</a>".utf8),
        ] as [[UInt8]])
    func `invalid bytes and characters are rejected`(bytes: [UInt8]) {
        for error in [
            failure { try value(of: .xmlParser, Data(bytes)) }, failure { try value(of: .xmlDocument, Data(bytes)) },
        ] {
            guard case .xml(let failure)? = error, case .xml(.malformed) = failure.reason else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test(arguments: [
        // libxml2 continues within markup that it could not parse, and finds an instruction there.
        "<a b=<?foo?>/>", "<a b='<?foo?>'/>", "<a <?foo?>/>", "<? <?foo?><a/>", "<a><! <?foo?></a>", "<a/ <?foo?>>",
        "<!DOCTYPE a '<?foo?>'><a/>", "<!DOCTYPE a PUBLIC '{<?foo?>' 's'><a/>", "<a></a <?foo?>>", "<1 <?foo?>/>",
        "<![CDATA[<?foo?>]]><a/>", "<a/><!DOCTYPE a [<?foo?>]>", "<!DOCTYPE a [<!ELEMENT a <?foo?>>]><a/>",
        "<!DOCTYPE a [x<?foo?>]><a/>", "<!DOCTYPE a [%<?foo?>]><a/>", "<a b='1'c='<?foo?>'/>",
    ])
    func `malformed markup is rejected before it is parsed`(text: String) {
        let failure = xmlFailure { try value(of: .xmlParser, text) }
        guard case .xml(.malformed)? = failure?.reason else {
            Issue.record("\(String(describing: failure))")
            return
        }
    }

    @Test(arguments: ["SYSTEM 's'", "PUBLIC 'p'", "PUBLIC 'p' ", "PUBLIC 'p' \"s\" ", ""])
    func `notations are rejected`(identifiers: String) {
        let text = "<!DOCTYPE a [<!NOTATION n \(identifiers)>]><a/>"
        #expect(xmlFailure { try value(of: .xmlParser, text) }?.reason == .xml(.declaration("NOTATION")))
    }

    @Test(arguments: [
        ("<a/>", "//x:a", "x"), ("<a xmlns:x='urn:u'/>", "//x:a", "x"), ("<x:a/>", "x:a", "x"),
        ("<x:a xmlns:y='urn:v' xmlns:x='urn:u'/>", "//y:b | //c", "y"), ("<a/>", "//b[x:f('y:')]", "x"),
        ("<a/>", "//ancestor::é:b", "é"), ("<a/>", "//namespace :: *", "namespace"), ("<a/>", "//@x:*", "x"),
    ])
    func `an XPath with a prefix that Foundation does not know is an error`(text: String, path: String, prefix: String)
        throws
    {
        let document = try value(of: .xmlDocument, text).makeDocument()
        let failure = xmlFailure { try document.nodes(forXPath: path) }
        #expect(failure?.reason == .xml(.xPath(prefix)))
        #expect(failure?.excerpt == path)
    }

    @Test(arguments: [
        ("<!--c--><x:a xmlns:x='urn:u' xmlns:y='urn:v'><b/><y:c z='1'/></x:a>", "//x:a | //y:c/@z", ["x:a", "z"]),
        (
            "<!DOCTYPE a [<!ELEMENT a ANY><?p?>]><a xml:lang='en'><b/></a>", "b | //self::a/@xml:lang",
            ["xml:lang", "b"]
        ),
        ("<a><b c='x:y'/></a>", "//b[@c='x:y' or @c=\"namespace::z:\"]", ["b"]), ("<a/>", "count(//x)", []),
    ])
    func `an XPath begins at the outermost element`(text: String, path: String, names: [String]) throws {
        let document = try value(of: .xmlDocument, text).makeDocument()
        #expect(try document.nodes(forXPath: path).map(\.name) == names)
    }

    @Test(arguments: [
        "<a/>", "<?xml version='1.0'?><a/>", "<?xml version='1.0' encoding='utf-8'?><!DOCTYPE a SYSTEM 's'><a/>",
        "<?p?><!DOCTYPE a PUBLIC 'p' 's' [<!ELEMENT a ANY><!-- c --><?p ?>] ><?q?><a x='1'>t<!--c--><b/></a>",
    ])
    func `no property of a document crashes because of its content`(text: String) throws {
        let document = try value(of: .xmlDocument, text).makeDocument()
        #expect(document.characterEncoding == (text.contains("encoding") ? "utf-8" : nil))
        #expect(document.dtd?.systemID == (text.contains("DOCTYPE") ? "s" : nil))
        #expect(document.dtd?.children?.isEmpty ?? true)
        #expect(document.localName == nil && document.prefix == nil && document.uri == nil)
        func visit(_ node: XMLNode) -> Int {
            let path = node.kind == .DTDKind ? "" : node.xPath
            return (path == nil ? 0 : 1) + (node.children ?? []).map(visit).reduce(0, +)
        }
        #expect(visit(document) > 1)
    }

    @Test(arguments: [
        "<a xmlns='myapp'/>", "<a xmlns='http://a b'/>", "<?xml version='1.1'?><a/>", "<a xml:space='foo'/>",
        "<?xml-foo?><a/>", "<a><?XML-foo?></a>", "<x:a/>", "<a x:b='1'/>", "<a x:='1'/>", "<:a/>", "<a xmlns:x=''/>",
        "<!DOCTYPE a SYSTEM 's'><a>&u;</a>",
    ])
    func `a well-formed document about which libxml2 warns is accepted`(text: String) throws {
        let content = try value(of: .xmlDocument, text)
        #expect(throws: Never.self) { try content.checkWellFormed() }
        let recorder = Recorder()
        try content.parse(with: recorder)
        #expect(recorder.elements.count == 1)
        #expect(try content.makeDocument().rootElement() != nil)
    }

    @Test(arguments: [
        "<a xmlns='myapp'><b></a>", "<a><b></a><?xml-foo?>", "<a/><b xmlns='myapp'/>", "<a xmlns='myapp'>&u;</a>",
        "<a>&u;<x:b/></a>", "<a><x:b></a></x:b>", "<?xml version='2.0'?><a/>", "<a><?xml version='1.0'?></a>",
        " <?xml version='1.0'?><a/>", "<?XML x?><a/>", "<a><?xMl?></a>", "<x:a", "<x:a>",
    ])
    func `an error before or after a warning is an error`(text: String) {
        #expect(xmlFailure { try value(of: .xmlDocument, text).makeDocument() } != nil)
        #expect(xmlFailure { try value(of: .xmlParser, text).parse(with: Recorder()) } != nil)
    }

    /// Slow, because of the limit.
    @Test func `a document with very many different names is rejected`() {
        let names = (0..<60_000).map { "<a\($0)/>" }.joined()
        #expect(
            xmlFailure { try value(of: .xmlDocument, "<a>\(names)</a>") }?.reason == .xml(.tooManyNames(limit: 50_000)))
        #expect(throws: Never.self) {
            try value(of: .xmlDocument, "<a>\(String(repeating: "<b c='d'/>", count: 60_000))</a>")
        }
    }

    @Test(.exitTest) func `a tree is built without a word about what is no error`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let content = try XMLContent(Data("<z:a xmlns:b='c'><m:d/></z:a>".utf8))
            #expect(try content.makeDocument().rootElement()?.childCount == 1)
        }
        #expect(result?.standardErrorContent.isEmpty == true)
    }

    @Test func `a document may have 10,000,000 bytes, the limit of libxml2`() throws {
        let text = String(repeating: "x", count: 10_000_000 - 7)
        try value(of: .xmlParser, "<a>\(text)</a>").checkWellFormed()
        #expect(
            xmlFailure { try value(of: .xmlParser, "<a>x\(text)</a>") }?.reason == .xml(.tooLarge(limit: 10_000_000)))
        let bare = "<?p?>" + String(repeating: " ", count: 10_000_000 - 9) + "<a/>"
        #expect(xmlFailure { try value(of: .xmlParser, bare) }?.reason == .xml(.tooLarge(limit: 10_000_000)))
    }

    @Test(arguments: [
        "<?\(String(repeating: "x", count: 60_000))?><a/>", "<\(String(repeating: "x", count: 60_000))/>",
    ])
    func `names that libxml2 would cut are rejected`(text: String) {
        guard case .xml(.malformed)? = xmlFailure({ try value(of: .xmlParser, text) })?.reason else {
            Issue.record("not refused")
            return
        }
    }

    @Test func `characters beyond the first chunk of libxml2 are complete`() throws {
        let long = String(repeating: "é漢👴", count: 100_000)
        let document = try value(of: .xmlDocument, "<a><b/>\(long)</a>").makeDocument()
        #expect(document.rootElement()?.stringValue == long)
    }

    @Test func `the maximum depth is accepted`() throws {
        let text = String(repeating: "<a>", count: 256) + String(repeating: "</a>", count: 256)
        #expect(throws: Never.self) { try value(of: .xmlDocument, text).makeDocument() }
        let empty = String(repeating: "<a>", count: 256) + "<a/>" + String(repeating: "</a>", count: 256)
        #expect(xmlFailure { try value(of: .xmlDocument, empty) }?.reason == .xml(.tooDeep(limit: 256)))
    }
}

/// Validates and serializes a response with status 200.
private func value<Serializer: ResponseSerializer>(
    of serializer: Serializer, _ body: Data, type: String? = "application/xml"
) throws -> Serializer.Output {
    let url = try #require(URL(string: "http://example.com/"))
    var head = ResponseHead(status: .ok, url: url)
    if let type { head.headers.append(HTTPField(name: .contentType, value: type)) }
    return try serializer.value(of: head, body)
}

private func value<Serializer: ResponseSerializer>(
    of serializer: Serializer, _ body: String, type: String? = "application/xml"
) throws -> Serializer.Output {
    try value(of: serializer, Data(body.utf8), type: type)
}

/// Returns the text of a document's outermost element.
private func text(_ body: Data, type: String = "application/xml") throws -> String {
    let root = try value(of: .xmlDocument, body, type: type).makeDocument().rootElement()
    return try #require(root?.stringValue)
}

/// Returns the serialization error that the work throws; `nil` if it throws none.
private func failure(_ work: () throws -> Any) -> SerializationError? {
    do {
        _ = try work()
        return nil
    } catch let error as SerializationError {
        return error
    } catch {
        Issue.record("another error: \(error)")
        return nil
    }
}

private func xmlFailure(_ work: () throws -> Any) -> SerializationError.Failure? {
    if case .xml(let failure)? = failure(work) { failure } else { nil }
}

private final class Recorder: NSObject, XMLParserDelegate {
    private(set) var elements: [String] = []
    private(set) var text = ""
    private(set) var instructions: [(target: String, data: String)] = []
    private let last: String?

    init(stopsAt last: String? = nil) {
        self.last = last
    }

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        elements.append(elementName)
        if elementName == last { parser.abortParsing() }
    }

    func parser(_ parser: XMLParser, foundProcessingInstructionWithTarget target: String, data: String?) {
        instructions.append((target, data ?? "nil"))
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        text += string
    }
}
