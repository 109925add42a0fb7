// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingXML
import FoundationXML

/// A serializer that returns an `XMLDocument`. It accepts `application/xml` and `text/xml`.
///
/// `error` is set for an empty body, for a truncated document, and for a document that declares entities: `XMLDocument`
/// on Linux would read the files that external entities refer to.
open class AFXMLDocumentResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    private let mask: Lock<UInt>

    /// Creates a serializer without options.
    public override init() {
        mask = Lock(0)
        super.init(contentTypes: ["application/xml", "text/xml"])
    }

    /// Creates a serializer with options for the document: the raw value of `XMLNode.Options`.
    public init(xmlDocumentOptions mask: UInt) {
        self.mask = Lock(mask)
        super.init(contentTypes: ["application/xml", "text/xml"])
    }

    /// The options for the document: the raw value of `XMLNode.Options`. Default: 0, none.
    open var options: UInt {
        get { mask.withLock { $0 } }
        set { mask.withLock { $0 = newValue } }
    }

    override func object(of data: Data?, _ validity: ResponseValidity, _ error: NSErrorPointer) -> Any? {
        guard !validity.stops(error) else { return nil }
        do throws(SerializationError) {
            return try XMLContent(data ?? Data())
                .makeDocument(options: XMLNode.Options(rawValue: options))
        } catch let failure {
            validity.fail(NSError(xml: failure), data, error)
            return nil
        }
    }

    /// Creates a serializer from an archive of its acceptable responses and options.
    public required init?(coder: NSCoder) {
        mask = Lock(coder.decodeValue(UInt.self, forKey: "options") ?? 0)
        super.init(coder: coder)
    }

    /// Archives the acceptable responses and the options.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(mask.withLock { $0 }, forKey: "options")
    }

    /// Returns a serializer with the same acceptable responses and options.
    open override func copy(with zone: NSZone? = nil) -> Any {
        AFXMLDocumentResponseSerializer(xmlDocumentOptions: options).accepting(as: self)
    }
}
