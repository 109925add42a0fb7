// SPDX-License-Identifier: MIT

import ANSystem

/// Puts parameters into the query of GET, HEAD and DELETE, and into a JSON body for other methods.
///
/// Nil parameters make no body and no `Content-Type`.
open class AFJSONRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
    private let options: Lock<JSONSerialization.WritingOptions>

    /// Creates a serializer that writes compact JSON.
    public override init() {
        options = Lock([])
        super.init()
    }

    /// Creates a serializer with options for the JSON.
    public init(writingOptions: JSONSerialization.WritingOptions) {
        options = Lock(writingOptions)
        super.init()
    }

    /// How the JSON is written.
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

    /// Restores what an archive keeps, the writing options among it.
    public required init?(coder: NSCoder) {
        options = Lock(.init(rawValue: coder.decodeValue(UInt.self, forKey: "writingOptions") ?? 0))
        super.init(coder: coder)
    }

    /// Archives what an archive keeps, the writing options among it.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(writingOptions.rawValue, forKey: "writingOptions")
    }

    /// A serializer that keeps what copies keep, the writing options among it.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFJSONRequestSerializer(writingOptions: writingOptions)
        copy.takeOver(from: self)
        return copy
    }
}
