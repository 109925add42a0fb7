// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingXML
import FoundationXML

/// Makes a parser for XML, which is not started; it takes `application/xml` and `text/xml`. A document that declares
/// entities is an error.
open class AFXMLParserResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    /// Creates a serializer.
    public override init() {
        super.init(contentTypes: ["application/xml", "text/xml"])
    }

    override func object(of data: Data?, _ verdict: ResponseVerdict, _ error: NSErrorPointer) -> Any? {
        guard !verdict.stops(error) else { return nil }
        do throws(SerializationError) {
            return try XMLContent(data ?? Data()).makeParser()
        } catch let failure {
            verdict.fail(NSError(xml: failure), data, error)
            return nil
        }
    }

    /// Restores what is acceptable.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    /// A serializer that takes the same responses.
    open override func copy(with zone: NSZone? = nil) -> Any {
        AFXMLParserResponseSerializer().accepting(as: self)
    }
}

extension NSError {
    /// The core's error as one of Foundation's XML parser.
    convenience init(xml error: SerializationError) {
        let code: XMLParser.ErrorCode =
            switch error {
            case .xml(let problem):
                switch problem.reason {
                case .unexpectedEnd: .prematureDocumentEndError
                case .malformed(let code): XMLParser.ErrorCode(rawValue: code) ?? .internalError
                case .declaration: .entityRefLoopError
                default: .internalError
                }
            case .text: .invalidCharacterError
            default: .internalError
            }
        self.init(
            domain: XMLParser.errorDomain, code: code.rawValue,
            userInfo: [NSLocalizedDescriptionKey: "\(error)"])
    }
}
