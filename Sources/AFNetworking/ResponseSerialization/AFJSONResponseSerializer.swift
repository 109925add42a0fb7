// SPDX-License-Identifier: MIT

import ANSystem

/// Makes Foundation's objects of JSON: dictionaries, arrays, strings, numbers and `NSNull`.
///
/// It takes `application/json`, `text/json` and `text/javascript`. A body that is empty, or one space, is nil. The JSON of a
/// response whose status is not acceptable is made too, beside the error.
open class AFJSONResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    private let settings: Lock<Settings>

    private struct Settings: Codable, Sendable {
        var readingOptions: UInt = 0
        var removesNulls = false
    }

    private static let contentTypes: Set = ["application/json", "text/json", "text/javascript"]

    /// Creates a serializer that takes arrays and objects.
    public override init() {
        settings = Lock(Settings())
        super.init(contentTypes: Self.contentTypes)
    }

    /// Creates a serializer with options for reading.
    public init(readingOptions: JSONSerialization.ReadingOptions) {
        settings = Lock(Settings(readingOptions: readingOptions.rawValue))
        super.init(contentTypes: Self.contentTypes)
    }

    /// How JSON is read; `fragmentsAllowed` takes any value at the top.
    open var readingOptions: JSONSerialization.ReadingOptions {
        get { .init(rawValue: settings.withLock { $0.readingOptions }) }
        set { settings.withLock { $0.readingOptions = newValue.rawValue } }
    }

    /// Whether nulls are left out of arrays and dictionaries; false by default.
    open var removesKeysWithNullValues: Bool {
        get { settings.withLock { $0.removesNulls } }
        set { settings.withLock { $0.removesNulls = newValue } }
    }

    override func object(of data: Data?, _ verdict: ResponseVerdict, _ error: NSErrorPointer) -> Any? {
        guard !verdict.stops(error) else { return nil }
        guard let data, !data.isEmpty, data != Self.oneSpace else { return nil }
        do {
            let options = readingOptions
            let object = try JSONSerialization.jsonObject(with: data, options: options)
            return removesKeysWithNullValues ? AFJSONObjectByRemovingKeysWithNullValues(object, options) : object
        } catch let failure {
            verdict.fail(failure, data, error)
            return nil
        }
    }

    /// The body of some servers' empty answers.
    private static let oneSpace = Data(" ".utf8)

    /// Restores what is acceptable and how JSON is read.
    public required init?(coder: NSCoder) {
        settings = Lock(coder.decodeValue(Settings.self, forKey: "JSON") ?? Settings())
        super.init(coder: coder)
    }

    /// Archives what is acceptable and how JSON is read.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(settings.withLock { $0 }, forKey: "JSON")
    }

    /// A serializer that takes the same responses and reads them in the same way.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFJSONResponseSerializer(readingOptions: readingOptions).accepting(as: self)
        copy.removesKeysWithNullValues = removesKeysWithNullValues
        return copy
    }
}
