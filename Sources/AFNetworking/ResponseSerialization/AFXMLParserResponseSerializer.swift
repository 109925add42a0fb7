// SPDX-License-Identifier: MIT

import FoundationXML

/// Makes a parser for XML, which is not started; it takes `application/xml` and `text/xml`.
open class AFXMLParserResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    /// Creates a serializer.
    public override init() {
        super.init(contentTypes: ["application/xml", "text/xml"])
    }

    /// Makes the `XMLParser`.
    open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
        guard !stopsAtGate(response, data, error) else { return nil }
        return XMLParser(data: data ?? Data())
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
