// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingXML
import FoundationXML

/// Makes documents of XML; it takes `application/xml` and `text/xml`. An empty body is an error, and so is a document that
/// is cut off, or that declares entities: those of Foundation on Linux read the files that a server names.
open class AFXMLDocumentResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    private let mask: Lock<UInt>

    /// Creates a serializer.
    public override init() {
        mask = Lock(0)
        super.init(contentTypes: ["application/xml", "text/xml"])
    }

    /// Creates a serializer with options, such as those of `XMLNode.Options`.
    public init(xmlDocumentOptions mask: UInt) {
        self.mask = Lock(mask)
        super.init(contentTypes: ["application/xml", "text/xml"])
    }

    /// Options, such as those of `XMLNode.Options`.
    open var options: UInt {
        get { mask.withLock { $0 } }
        set { mask.withLock { $0 = newValue } }
    }

    override func object(of data: Data?, _ verdict: ResponseVerdict, _ error: NSErrorPointer) -> Any? {
        guard !verdict.stops(error) else { return nil }
        do throws(SerializationError) {
            return try XMLContent(data ?? Data())
                .makeDocument(options: XMLNode.Options(rawValue: options))
        } catch let failure {
            verdict.fail(NSError(xml: failure), data, error)
            return nil
        }
    }

    /// Restores what is acceptable and the options.
    public required init?(coder: NSCoder) {
        mask = Lock(coder.decodeValue(UInt.self, forKey: "options") ?? 0)
        super.init(coder: coder)
    }

    /// Archives what is acceptable and the options.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(mask.withLock { $0 }, forKey: "options")
    }

    /// A serializer that takes the same responses with the same options.
    open override func copy(with zone: NSZone? = nil) -> Any {
        AFXMLDocumentResponseSerializer(xmlDocumentOptions: options).accepting(as: self)
    }
}
