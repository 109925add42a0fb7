// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import Testing

/// Archives and `Codable` wrappers.
@Suite struct ArchivesTests {
    private func restored<Object: NSObject & NSSecureCoding>(_ object: Object) throws -> Object {
        let data = try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: true)
        return try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: Object.self, from: data))
    }

    private var configuration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.timeoutIntervalForRequest = 7
        configuration.timeoutIntervalForResource = 70
        configuration.httpAdditionalHeaders = ["X-A": "a", "X-Number": 5]
        configuration.httpMaximumConnectionsPerHost = 3
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpShouldSetCookies = false
        configuration.httpCookieAcceptPolicy = .never
        configuration.connectionProxyDictionary = ["HTTPProxy": "127.0.0.1", "HTTPPort": 8080]
        return configuration
    }

    @Test func `an archived URL session manager keeps its configuration`() throws {
        let manager = AFURLSessionManager(sessionConfiguration: configuration)
        manager.completionQueue = .global()
        let copy = try restored(manager)
        let kept = copy.session.configuration
        #expect(kept.timeoutIntervalForRequest == 7)
        #expect(kept.timeoutIntervalForResource == 70)
        #expect(kept.httpAdditionalHeaders as? [String: String] == ["X-A": "a", "X-Number": "5"])
        #expect(kept.httpMaximumConnectionsPerHost == 3)
        #expect(kept.requestCachePolicy == .reloadIgnoringLocalCacheData)
        #expect(!kept.httpShouldSetCookies)
        #expect(kept.httpCookieAcceptPolicy == .never)
        #expect(copy.coreSession.configuration.proxy == manager.coreSession.configuration.proxy)
        #expect(copy.completionQueue == nil)
        let taken = try #require(manager.copy() as? AFURLSessionManager)
        #expect(taken.session.configuration.timeoutIntervalForRequest == 7)
        #expect(taken.anyResponseSerializer is AFJSONResponseSerializer)
    }

    @Test func `an archived HTTP session manager keeps base URL, serializers and policy`() throws {
        let manager = AFHTTPSessionManager(
            baseURL: URL(string: "https://example.com/v1"), sessionConfiguration: configuration)
        let request = AFJSONRequestSerializer(writingOptions: .sortedKeys)
        request.setValue("v", forHTTPHeaderField: "X-B")
        manager.requestSerializer = request
        manager.responseSerializer = AFCompoundResponseSerializer(responseSerializers: [
            AFJSONResponseSerializer(readingOptions: .fragmentsAllowed), AFHTTPResponseSerializer(),
        ])
        manager.securityPolicy = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: [Data([1])])
        let copy = try restored(manager)
        #expect(copy.baseURL == manager.baseURL)
        #expect(copy.session.configuration.timeoutIntervalForRequest == 7)
        let serializer = try #require(copy.requestSerializer as? AFJSONRequestSerializer)
        #expect(serializer.writingOptions == .sortedKeys)
        #expect(serializer.value(forHTTPHeaderField: "X-B") == "v")
        let compound = try #require(copy.responseSerializer as? AFCompoundResponseSerializer)
        let child = compound.responseSerializers.first as? AFJSONResponseSerializer
        #expect(child?.readingOptions == .fragmentsAllowed)
        #expect(compound.responseSerializers.count == 2)
        #expect(copy.securityPolicy.sslPinningMode == .publicKey)
        #expect(copy.securityPolicy.pinnedCertificates == [Data([1])])
        let empty = try restored(AFHTTPSessionManager())
        #expect(empty.baseURL == nil)
    }

    @Test func `a restored manager has no cookies of others unless the archived one had`() throws {
        func storage(_ manager: AFURLSessionManager) -> String {
            let configuration = manager.session.configuration
            #expect(
                manager.coreSession.configuration.transfer.handlesCookies == (configuration.httpCookieStorage != nil))
            guard let storage = configuration.httpCookieStorage else { return "none" }
            return storage === HTTPCookieStorage.shared ? "shared" : "own"
        }
        let without = URLSessionConfiguration.default
        without.httpCookieStorage = nil
        for (configuration, expected) in [(without, "none"), (.ephemeral, "own"), (.default, "shared")] {
            let manager = AFURLSessionManager(sessionConfiguration: configuration)
            #expect(storage(manager) == expected)
            #expect(try storage(restored(manager)) == expected)
            let text = try JSONEncoder().encode(AFArchived(manager))
            let wrapped = try JSONDecoder().decode(AFArchived<AFURLSessionManager>.self, from: text).object
            #expect(storage(wrapped) == expected)
        }
    }

    @Test func `a compound serializer is archived without those that it skips`() throws {
        let compound = AFCompoundResponseSerializer(responseSerializers: [AFJSONResponseSerializer(), Skipped()])
        let text = try JSONEncoder().encode(AFArchived(compound))
        let wrapped = try JSONDecoder().decode(AFArchived<AFCompoundResponseSerializer>.self, from: text).object
        for copy in try [restored(compound), wrapped] {
            #expect(copy.responseSerializers.count == 1 && copy.responseSerializers.first is AFJSONResponseSerializer)
        }
    }

    private struct Settings: Codable {
        var serializer: AFArchived<AFJSONRequestSerializer>
        var policy: AFArchived<AFSecurityPolicy>
    }

    @Test func `serializers, policies and managers can be wrapped in Codable values`() throws {
        let settings = Settings(
            serializer: AFArchived(AFJSONRequestSerializer(writingOptions: .sortedKeys)),
            policy: AFArchived(AFSecurityPolicy(pinningMode: .certificate, withPinnedCertificates: [])))
        let text = try JSONEncoder().encode(settings)
        let decoded = try JSONDecoder().decode(Settings.self, from: text)
        #expect(decoded.serializer.object.writingOptions == .sortedKeys)
        #expect(decoded.policy.object.sslPinningMode == .certificate)
    }

    @Test func `subclasses are restored with their type and properties`() throws {
        let serializer = CountingSerializer()
        serializer.count = 5
        serializer.isOn = true
        serializer.name = "x"
        serializer.setValue("v", forHTTPHeaderField: "X-A")
        let manager = AFHTTPSessionManager(baseURL: URL(string: "https://example.com/"))
        manager.requestSerializer = serializer
        manager.responseSerializer = AFCompoundResponseSerializer(responseSerializers: [AFJSONResponseSerializer()])
        let text = try JSONEncoder().encode(AFArchived(manager))
        let decoded = try JSONDecoder().decode(AFArchived<AFHTTPSessionManager>.self, from: text).object
        let found = try #require(decoded.requestSerializer as? CountingSerializer)
        #expect(found.count == 5 && found.isOn && found.name == "x")
        #expect(found.value(forHTTPHeaderField: "X-A") == "v")
        #expect((decoded.responseSerializer as? AFCompoundResponseSerializer)?.responseSerializers.count == 1)
    }

    private final class Nested: AFJSONRequestSerializer, @unchecked Sendable {}

    @Test func `a nested class cannot be archived`() {
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(AFArchived(Nested())) }
        let manager = AFHTTPSessionManager()
        manager.requestSerializer = Nested()
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(AFArchived(manager)) }
    }

    @Test func `decoding data that is not an archive of the type throws an error`() throws {
        let other = try JSONEncoder().encode(AFArchived(AFHTTPResponseSerializer()))
        for text in [Data(#""""#.utf8), Data(#""AAAA""#.utf8), Data("5".utf8), other] {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(AFArchived<AFSecurityPolicy>.self, from: text)
            }
        }
    }

    @Test(arguments: [
        #"{"name": "Foundation.NSArray", "entries": {"NS.objects": {"text": {"_0": "x"}}}}"#,
        #"{"name": "Foundation.NSString", "entries": {}}"#,
        #"{"name": "Foundation.NSNumber", "entries": {"NS.number": {"text": {"_0": "x"}}}}"#,
        #"{"name": "FoundationNetworking.NSURLRequest", "entries": {}}"#,
    ])
    func `decoding an object of Foundation that cannot be decoded safely throws an error`(child: String) throws {
        let serializer = AFCompoundResponseSerializer(responseSerializers: [AFJSONResponseSerializer()])
        let archive = try JSONEncoder().encode(AFArchived(serializer))
        var object = try #require(try JSONSerialization.jsonObject(with: archive) as? [String: Any])
        var entries = try #require(object["entries"] as? [String: Any])
        let part = try JSONSerialization.jsonObject(with: Data(child.utf8))
        for value in [["object": ["_0": part]], ["objects": ["_0": [part]]]] {
            entries["responseSerializers"] = value
            object["entries"] = entries
            // A coder without a list of classes accepts every class.
            object["name"] = String(reflecting: DecodingSerializer.self)
            let damaged = try JSONSerialization.data(withJSONObject: object)
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(AFArchived<AFHTTPResponseSerializer>.self, from: damaged)
            }
        }
    }

    @Test func `values of Foundation that a subclass encodes are restored`() throws {
        let serializer = DecodingSerializer()
        let url = try #require(NSURL(string: "http://a/b"))
        let date = NSDate(timeIntervalSince1970: 5)
        let keys = ["a", "b", "c"].map { $0 as NSString }
        serializer.value = NSDictionary(objects: [date, url, NSNumber(5)], forKeys: keys)
        let archive = try JSONEncoder().encode(AFArchived(serializer))
        let restored = try JSONDecoder().decode(AFArchived<DecodingSerializer>.self, from: archive).object.value
        #expect(restored == serializer.value)
    }

    @Test(arguments: [(5, -3), (-1, 2), (5, 0), (2, Int.max)])
    func `an archive with an invalid range of status codes is an error`(location: Int, length: Int) throws {
        func archive(_ location: Int, _ length: Int) -> Data {
            let settings = """
                {"options": 0, "format": 100, "removesNulls": false, \
                "statusCodes": {"indexes": [{"location": \(location), "length": \(length)}]}}
                """
            let data = Data(settings.utf8).base64EncodedString()
            return Data(
                """
                {"name": "AFNetworking.AFHTTPResponseSerializer", \
                "entries": {"responseSerializer": {"data": {"_0": "\(data)"}}}}
                """.utf8)
        }
        let decoded = try JSONDecoder().decode(AFArchived<AFHTTPResponseSerializer>.self, from: archive(200, 100))
        #expect(decoded.object.acceptableStatusCodes == IndexSet(integersIn: 200...299))
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(AFArchived<AFHTTPResponseSerializer>.self, from: archive(location, length))
        }
    }

    @Test func `an archived manager keeps infinite timeouts and its other settings`() throws {
        let configuration = configuration
        configuration.timeoutIntervalForRequest = .infinity
        configuration.timeoutIntervalForResource = .infinity
        let kept = try restored(AFURLSessionManager(sessionConfiguration: configuration)).session.configuration
        #expect(kept.timeoutIntervalForRequest == .infinity)
        #expect(kept.timeoutIntervalForResource == .infinity)
        #expect(kept.httpMaximumConnectionsPerHost == 3)
    }
}

/// A subclass that archives an object of any class.
final class DecodingSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    var value: NSObject?

    override init() {
        super.init()
    }

    required init?(coder: NSCoder) {
        super.init(coder: coder)
        value = coder.decodeObject(forKey: "responseSerializers") as? NSObject
    }

    override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encode(value, forKey: "responseSerializers")
    }
}

/// A subclass that archives properties of its own.
final class CountingSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
    var count = 0
    var isOn = false
    var name = ""

    override init() {
        super.init()
    }

    required init?(coder: NSCoder) {
        super.init(coder: coder)
        count = coder.decodeInteger(forKey: "count")
        isOn = coder.decodeBool(forKey: "isOn")
        name = coder.decodeObject(of: NSString.self, forKey: "name").map { "\($0)" } ?? ""
    }

    override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encode(count, forKey: "count")
        coder.encode(isOn, forKey: "isOn")
        coder.encode(name as NSString, forKey: "name")
    }
}

/// A serializer that is not a subclass of the module's, which a compound serializer skips.
final class Skipped: NSObject, AFURLResponseSerialization, NSSecureCoding, @unchecked Sendable {
    static var supportsSecureCoding: Bool { true }

    override init() { super.init() }
    required init?(coder: NSCoder) { super.init() }

    func encode(with coder: NSCoder) {}
    func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? { nil }
    func copy(with zone: NSZone? = nil) -> Any { self }
}
