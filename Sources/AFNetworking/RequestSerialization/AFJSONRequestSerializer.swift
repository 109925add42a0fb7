// SPDX-License-Identifier: MIT

import ANSystem

/// A serializer that encodes parameters into the query of GET, HEAD and DELETE requests and into a JSON body for other
/// methods.
///
/// If the parameters are `nil`, the request has neither a body nor a `Content-Type`.
open class AFJSONRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
    private let options: Lock<JSONSerialization.WritingOptions>

    /// Creates a serializer that writes compact JSON.
    public override init() {
        options = Lock([])
        super.init()
    }

    /// Creates a serializer with options for writing JSON.
    public init(writingOptions: JSONSerialization.WritingOptions) {
        options = Lock(writingOptions)
        super.init()
    }

    /// The options for writing JSON. Default: none, which gives compact JSON.
    open var writingOptions: JSONSerialization.WritingOptions {
        get { options.withLock { $0 } }
        set { options.withLock { $0 = newValue } }
    }

    override func encode(
        _ parameters: Any?, for method: String, _ request: () -> URLRequest
    ) throws -> EncodedParameters {
        guard !encodesParametersInURI(method) else { return try super.encode(parameters, for: method, request) }
        guard let parameters else { return .nothing }
        guard JSONSerialization.isValidJSONObject(parameters) else {
            throw NSError.requestSerialization(
                .cannotDecodeContentData, reason: "The `parameters` argument is not valid JSON."
            ).about(request())
        }
        return .body(
            try JSONSerialization.data(withJSONObject: parameters, options: writingOptions),
            contentType: "application/json")
    }

    /// Creates a serializer from an archive of its header fields, query style and writing options.
    public required init?(coder: NSCoder) {
        options = Lock(.init(rawValue: coder.decodeValue(UInt.self, forKey: "writingOptions") ?? 0))
        super.init(coder: coder)
    }

    /// Archives the header fields, the query style and the writing options.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(writingOptions.rawValue, forKey: "writingOptions")
    }

    /// Returns a serializer with the same header fields, query style, query block and writing options.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFJSONRequestSerializer(writingOptions: writingOptions)
        copy.takeOver(from: self)
        return copy
    }
}
