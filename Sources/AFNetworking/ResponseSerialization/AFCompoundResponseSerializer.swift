// SPDX-License-Identifier: MIT

/// A serializer that tries other serializers in order and returns the object of the first that returns one.
///
/// If none returns an object, the result is the response body, validated by this serializer's own rules: status codes
/// 200 to 299 and any media type by default. The errors of the others are then ignored. Serializers that are not
/// subclasses of ``AFHTTPResponseSerializer`` are skipped.
open class AFCompoundResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    private let serializers: UncheckedSendable<[any AFURLResponseSerialization]>

    /// Creates a serializer that tries no others and returns the response body; it accepts the status codes 200 to 299
    /// and any media type.
    public override init() {
        serializers = UncheckedSendable([])
        super.init()
    }

    /// Creates a serializer that tries other serializers. If none of them returns an object, it accepts the status
    /// codes 200 to 299 and any media type.
    ///
    /// - Parameter responseSerializers: The serializers, in the order in which they are tried. Those that are not
    ///   subclasses of ``AFHTTPResponseSerializer`` are skipped.
    public init(responseSerializers: [any AFURLResponseSerialization]) {
        serializers = UncheckedSendable(responseSerializers)
        super.init()
    }

    /// Returns a serializer that tries other serializers.
    ///
    /// - Parameter serializers: The serializers, in the order in which they are tried. Those that are not subclasses of
    ///   ``AFHTTPResponseSerializer`` are skipped.
    public static func compoundSerializer(
        withResponseSerializers serializers: [any AFURLResponseSerialization]
    ) -> AFCompoundResponseSerializer {
        AFCompoundResponseSerializer(responseSerializers: serializers)
    }

    /// The serializers that are tried, in order; they cannot be changed. Empty by default.
    open var responseSerializers: [any AFURLResponseSerialization] { serializers.value }

    /// Returns the object of the first serializer that returns one, and sets `error` to that serializer's error, if
    /// any. If none returns an object, the result is the body, validated by this serializer's own rules, whose error is
    /// set. The body is returned in any case.
    open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
        for case let serializer as AFHTTPResponseSerializer in responseSerializers {
            let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
            guard let object = serializer.responseObject(for: response, data: data, error: pointer) else { continue }
            error?.pointee = .combined(pointer.pointee, underlying: error?.pointee)
            return object
        }
        return super.responseObject(for: response, data: data, error: error)
    }

    /// Creates a serializer from an archive written by ``encode(with:)``; `nil` if the acceptable responses are missing
    /// or cannot be decoded, as in an archive of AFNetworking itself.
    public required init?(coder: NSCoder) {
        let classes: [AnyClass] = [
            NSArray.self, AFHTTPResponseSerializer.self, AFJSONResponseSerializer.self,
            AFPropertyListResponseSerializer.self, AFXMLParserResponseSerializer.self,
            AFXMLDocumentResponseSerializer.self, AFCompoundResponseSerializer.self,
        ]
        let children =
            coder.decodeObject(of: classes, forKey: "responseSerializers") as? [any AFURLResponseSerialization]
        serializers = UncheckedSendable(children ?? [])
        super.init(coder: coder)
    }

    /// Archives the acceptable responses and the serializers that are tried, without those that are skipped.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        // The decoder ends the process for an object of any other class.
        let tried = responseSerializers.filter { $0 is AFHTTPResponseSerializer }
        coder.encode(tried as NSArray, forKey: "responseSerializers")
    }

    override func makeEmptyCopy() -> AFHTTPResponseSerializer {
        AFCompoundResponseSerializer(responseSerializers: responseSerializers)
    }
}
