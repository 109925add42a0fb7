// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingXML
import FoundationXML

/// A serializer that returns an `XMLParser`, which the caller starts. It accepts `application/xml` and `text/xml`.
/// `error` is set for a document that declares entities.
open class AFXMLParserResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    /// Creates a serializer.
    public override init() {
        super.init(contentTypes: ["application/xml", "text/xml"])
    }

    override func object(of data: Data?, _ validity: ResponseValidity, _ error: NSErrorPointer) -> Any? {
        guard !validity.stops(error) else { return nil }
        do throws(SerializationError) {
            return try XMLContent(data ?? Data()).makeParser()
        } catch let failure {
            validity.fail(NSError(xml: failure), data, error)
            return nil
        }
    }

    /// Creates a serializer from an archive of its acceptable responses.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    /// Returns a serializer with the same acceptable responses.
    open override func copy(with zone: NSZone? = nil) -> Any {
        AFXMLParserResponseSerializer().accepting(as: self)
    }
}

extension NSError {
    /// Creates an error in the domain of Foundation's `XMLParser` from a core error.
    ///
    /// The codes are those of Apple's `XMLParser.ErrorCode`, which are libxml2's. Foundation's parser on Linux reports them too,
    /// but its `XMLParser.ErrorCode` counts differently.
    convenience init(xml error: SerializationError) {
        let code =
            switch error {
            case .xml(let failure):
                switch failure.reason {
                case .unexpectedEnd: XMLCode.prematureDocumentEnd
                case .malformed(let code) where code > 0: code
                case .declaration: XMLCode.entityRefLoop
                default: XMLCode.internalError
                }
            case .text: XMLCode.invalidCharacter
            default: XMLCode.internalError
            }
        self.init(
            domain: XMLParser.errorDomain, code: code, userInfo: [NSLocalizedDescriptionKey: "\(error)"])
    }
}

/// Codes of `XMLParser.ErrorCode` on Apple's systems.
private enum XMLCode {
    static let internalError = 1
    static let prematureDocumentEnd = 5
    static let invalidCharacter = 9
    static let entityRefLoop = 89
}
