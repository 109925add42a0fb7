// SPDX-License-Identifier: MIT

/// Asks other serializers in turn; the first one that makes an object decides.
///
/// Where none does, the object is the body, judged by what this serializer itself takes: the statuses 200 to 299 with any
/// media type. Serializers that do not descend from ``AFHTTPResponseSerializer`` are not asked.
open class AFCompoundResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    private let serializers: Handover<[any AFURLResponseSerialization]>

    /// Creates a serializer that asks nobody.
    public override init() {
        serializers = Handover([])
        super.init()
    }

    /// Creates a serializer that asks these in their order.
    public init(responseSerializers: [any AFURLResponseSerialization]) {
        serializers = Handover(responseSerializers)
        super.init()
    }

    /// Creates a serializer that asks these in their order.
    public static func compoundSerializer(
        withResponseSerializers serializers: [any AFURLResponseSerialization]
    ) -> AFCompoundResponseSerializer {
        AFCompoundResponseSerializer(responseSerializers: serializers)
    }

    /// Whom it asks.
    open var responseSerializers: [any AFURLResponseSerialization] { serializers.value }

    /// Makes the object of the first serializer that has one, with its error if there is one.
    open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
        for case let serializer as AFHTTPResponseSerializer in responseSerializers {
            let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
            guard let object = serializer.responseObject(for: response, data: data, error: pointer) else { continue }
            error?.pointee = .combined(pointer.pointee, underlying: error?.pointee)
            return object
        }
        return super.responseObject(for: response, data: data, error: error)
    }

    /// Restores what is acceptable and whom it asks.
    public required init?(coder: NSCoder) {
        let classes: [AnyClass] = [
            NSArray.self, AFHTTPResponseSerializer.self, AFJSONResponseSerializer.self,
            AFPropertyListResponseSerializer.self, AFXMLParserResponseSerializer.self,
            AFXMLDocumentResponseSerializer.self, AFCompoundResponseSerializer.self,
        ]
        let children =
            coder.decodeObject(of: classes, forKey: "responseSerializers") as? [any AFURLResponseSerialization]
        serializers = Handover(children ?? [])
        super.init(coder: coder)
    }

    /// Archives what is acceptable and whom it asks.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encode(responseSerializers as NSArray, forKey: "responseSerializers")
    }

    /// A serializer that takes the same responses and asks the same serializers.
    open override func copy(with zone: NSZone? = nil) -> Any {
        AFCompoundResponseSerializer(responseSerializers: responseSerializers).accepting(as: self)
    }
}
