// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingXML
import FoundationXML

private let contentTypes: Set = ["application/xml", "text/xml"]

/// A serializer that returns an `XMLParser`, which the caller starts. It accepts `application/xml` and `text/xml`.
///
/// The error is one of `XMLParser.errorDomain`, with the codes of libxml2, for a document that declares entities or
/// default attributes, has malformed tags or more than 1,000 attributes in one, is nested more than 256 levels deep, or
/// is not text in a known encoding. Other faults are detected by the parser, which an empty body, such as that of a
/// download, gets as well: on Linux, its `parse()` returns `true` for a truncated document; check `parserError`, too.
/// The parser loads no external entities.
open class AFXMLParserResponseSerializer: AFHTTPResponseSerializer, BodyConverter, @unchecked Sendable {
    /// Creates a serializer that accepts `application/xml` and `text/xml`, and the status codes 200 to 299.
    public override init() {
        super.init(Settings(contentTypes: contentTypes))
    }

    func convert(_ data: Data?) throws -> Any? {
        try XMLContent(data ?? Data()).makeParser()
    }

    /// Creates a serializer from an archive of its acceptable responses; `nil` if these are missing or cannot be
    /// decoded, as in an archive of AFNetworking itself.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    override func makeEmptyCopy() -> AFHTTPResponseSerializer { AFXMLParserResponseSerializer() }
}

/// A serializer that returns an `XMLDocument`. It accepts `application/xml` and `text/xml`.
///
/// The error is one of `XMLParser.errorDomain`, with the codes of libxml2, for an empty body, which is that of every
/// download, for a document that is malformed, truncated, not text in a known encoding, nested more than 256 levels
/// deep or has more than 1,000 attributes in one tag, and for one that declares default attributes or entities:
/// `XMLDocument` on Linux would read the files that external entities refer to.
open class AFXMLDocumentResponseSerializer: AFHTTPResponseSerializer, BodyConverter, @unchecked Sendable {
    /// Creates a serializer without options, which accepts `application/xml` and `text/xml`, and the status codes 200
    /// to 299.
    public override init() {
        super.init(Settings(contentTypes: contentTypes))
    }

    /// Creates a serializer with options for the document, which accepts `application/xml` and `text/xml`, and the
    /// status codes 200 to 299.
    ///
    /// - Parameter mask: The raw value of `XMLNode.Options`; see ``options``.
    public init(xmlDocumentOptions mask: UInt) {
        super.init(Settings(contentTypes: contentTypes, options: mask))
    }

    /// The options for the document: the raw value of `XMLNode.Options`. Default: 0, none. Those that load files or
    /// validate, such as `documentXInclude`, are ignored.
    open var options: UInt {
        get { settings.withLock { $0.options } }
        set { settings.withLock { $0.options = newValue } }
    }

    func convert(_ data: Data?) throws -> Any? {
        try XMLContent(data ?? Data()).makeDocument(options: XMLNode.Options(rawValue: options))
    }

    /// Creates a serializer from an archive of its acceptable responses and options; `nil` if these are missing or
    /// cannot be decoded, as in an archive of AFNetworking itself.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    override func makeEmptyCopy() -> AFHTTPResponseSerializer { AFXMLDocumentResponseSerializer() }
}

extension NSError {
    /// Creates the error of Foundation's parsers that corresponds to an error of the core's.
    ///
    /// The codes for XML are those of Apple's `XMLParser.ErrorCode`, which are libxml2's. Foundation's parser on Linux
    /// reports them too, but its `XMLParser.ErrorCode` counts differently.
    convenience init(parsing error: SerializationError) {
        let (domain, code) =
            switch error {
            case .propertyList: (NSCocoaErrorDomain, CocoaError.Code.propertyListReadCorrupt.rawValue)
            // `invalidCharacterError`
            case .text: (XMLParser.errorDomain, 9)
            case .xml(let failure): (XMLParser.errorDomain, failure.code)
            default: (XMLParser.errorDomain, 1)
            }
        self.init(domain: domain, code: code, userInfo: [NSLocalizedDescriptionKey: "\(error)"])
    }
}

extension SerializationError.Failure {
    /// The code in Apple's `XMLParser.ErrorCode`.
    fileprivate var code: Int {
        switch reason {
        case .xml(.unexpectedEnd): 5  // `prematureDocumentEndError`
        case .xml(.malformed(let code)) where code > 0: code
        case .xml(.declaration): 89  // `entityRefLoopError`
        default: 1  // `internalError`
        }
    }
}
