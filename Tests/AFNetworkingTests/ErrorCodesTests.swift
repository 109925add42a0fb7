// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Foundation
import Testing

/// The `URLError` codes of session errors.
@Suite(.timeLimit(.minutes(5))) struct ErrorCodesTests {
    /// An interceptor that throws an error.
    private struct Failing: Interceptor {
        let error: any Error

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse { throw error }
    }

    @Test(
        arguments: [
            TransportError(.shutDown), SessionError.invalidated, SerializationError.url(.noBase("x")),
            ClientIdentity.LoadingError.wrongPassphrase, ConformanceError("It failed."),
        ] as [any Error])
    func `Foundation's description of an error is its sentence`(error: any Error) {
        #expect(error.localizedDescription == "\(error)")
    }

    @Test func `Foundation's description of an invalid pin is its reason`() {
        let error = #expect(throws: SecurityPolicy.ConfigurationError.self) { try PublicKeyPin("x") }
        #expect(error?.localizedDescription == error?.description)
    }

    /// A session error and its codes for completion handlers and hooks.
    struct Row: CustomTestStringConvertible, Sendable {
        let error: SessionError
        let code: Int
        let hookCode: Int

        var testDescription: String { "\(error)" }

        init(_ code: Int, _ error: SessionError, hookCode: Int? = nil) {
            self.error = error
            self.code = code
            self.hookCode = hookCode ?? code
        }

        init(_ code: Int, _ reason: TransportError.Reason, hookCode: Int? = nil) {
            self.init(code, .transport(TransportError(reason)), hookCode: hookCode)
        }
    }

    private static let digest = ContentDigest(.sha256, Data(count: 32))

    /// The resume data of an interrupted download.
    private static func partial() throws -> ResumeData {
        let known = #"{"codings": [], "digests": []}"#
        let text = """
            {"url": "http://a.example/x", "headers": [], "offset": 1, "partialFile": "/a", "overwritesExisting": true,
                "representation": \(known)}
            """
        return try JSONDecoder().decode(ResumeData.self, from: Data(text.utf8))
    }

    private static let sessionErrors: [Row] = [
        Row(-1000, .serialization(.url(.noBase("x")))), Row(-1016, .serialization(.parameters(.notADictionary))),
        Row(-1007, .redirect(.tooMany(limit: 20, to: ""))), Row(-1021, .redirect(.bodyNotReplayable)),
        Row(-1010, .redirect(.location("x"))), Row(-1010, .redirect(.downgrade(to: "http://x/"))),
        Row(-1008, SessionError.notCached), Row(-1008, .notResumable(.changed)),
        Row(-1015, .digest(expected: digest, found: digest, path: "file", url: URL(filePath: "/"))),
        Row(-3003, .file(.init(path: "/a", call: "open", errno: 2, message: ""))),
        Row(-1013, .authentication(.bodyNotReplayable)), Row(-1, .closedResponse(ofInterceptor: "x")),
        Row(-1, SessionError.invalidated), Row(-1, .cookiesNotStored),
    ]

    private static let transportErrors: [Row] = [
        Row(-1002, .unsupportedScheme("ftp")), Row(-1000, .invalidURL("x")),
        Row(-1001, .timedOut(.connect)), Row(-1003, .cannotResolve),
        Row(-1009, .cannotConnect(.unreachable)), Row(-1001, .cannotConnect(.systemTimeout)),
        Row(-1004, .cannotConnect(.refused)), Row(-1004, .cannotConnect(.other)),
        Row(-1004, .proxy(.authenticationRequired)), Row(-1005, .connectionLost(.inHead)),
        Row(-1015, .invalidContentEncoding), Row(-1011, .invalidResponse(.notHTTP)),
        Row(-1103, .responseTooLarge(.body(limit: 1))), Row(-1021, .requestBody(.notReplayable)),
        Row(-1100, .requestBody(.file(path: "/a", reason: ""))),
        Row(-1016, .requestBody(.tooLong(declared: 1))), Row(-999, .shutDown),
        Row(-1, .unsupported(.http2)), Row(-1, .internalInconsistency("")),
    ]

    /// Rejected servers are -1202 for the handler and cancelled for the hook; other TLS failures are the same for both.
    private static let tlsErrors: [Row] =
        ([
            .certificateExpired, .certificateNotYetValid, .selfSigned, .unknownAuthority, .wrongHost, .revoked,
            .revocationUnknown, .stapleMissing, .badStaple(""), .wrongPurpose, .weakKey, .nameConstraints,
            .pinMismatch(expected: []), .certificateNotPinned, .noPins, .invalidWithoutPins, .rejected(""),
            .untrusted(verifyResult: 1),
        ] as [TransportError.TLSFailure]).map { Row(-1202, .tls($0), hookCode: -999) }
        + [
            Row(-1200, .tls(.handshake)), Row(-1200, .tls(.badTrustRoots)),
            Row(-1200, .tls(.badSecurityPolicy(.revocationLists))), Row(-1200, .tls(.keyLog(path: ""))),
            Row(-1205, .tls(.badClientIdentity(.noKey))), Row(-1205, .tls(.clientCertificateRefused)),
        ]

    /// The errors that a completion handler and a hook get for a failed request.
    private func outcome(of error: any Error) async -> (handler: NSError?, hook: NSError?) {
        let session = SessionManager {
            $0.transport = MockTransport(.text("x"))
            $0.interceptors = [Failing(error: error)]
        }
        let manager = AFHTTPSessionManager(session: session)
        manager.completionQueue = DispatchQueue(label: "completion")
        let told = Log<NSError?>()
        manager.setTaskDidCompleteBlock { _, _, error in told.add(error as NSError?) }
        let result = await manager.fetch("http://a.example/x")
        return (result.error, told.entries.first ?? nil)
    }

    @Test(arguments: sessionErrors + transportErrors + tlsErrors)
    func `each session error has its URLError code`(row: Row) async throws {
        let (handler, hook) = await outcome(of: row.error)
        for (error, code) in [(handler, row.code), (hook, row.hookCode)] {
            #expect(error?.domain == NSURLErrorDomain)
            #expect(error?.code == code)
            #expect(error?.userInfo[NSUnderlyingErrorKey] is SessionError)
            #expect(error?.userInfo[NSURLErrorFailingURLErrorKey] as? URL == URL(string: "http://a.example/x"))
            #expect(error?.userInfo[NSURLSessionDownloadTaskResumeData] == nil)
        }
    }

    @Test func `an interrupted download has the code of its cause, and resume data`() async throws {
        let cause = SessionError.transport(TransportError(.connectionLost(.inBody(received: 1, expected: 2))))
        let error = try await outcome(of: SessionError.interrupted(by: cause, Self.partial())).handler
        #expect(error?.code == -1005)
        #expect(error?.userInfo[NSURLSessionDownloadTaskResumeData] is Data)
    }

    @Test func `other errors pass unchanged, and cancellation is -999`() async {
        let own = await outcome(of: NSError(domain: "mine", code: 7))
        for error in [own.handler, own.hook] {
            #expect(error?.domain == "mine")
            #expect(error?.code == 7)
        }
        let cancelled = await outcome(of: CancellationError())
        for error in [cancelled.handler, cancelled.hook] {
            #expect(error?.domain == NSURLErrorDomain)
            #expect(error?.code == -999)
        }
    }

    // MARK: Casts

    /// An error that a block receives, its object as `NSError`, and whether a cast restores the original.
    struct Castable: CustomTestStringConvertible, Sendable {
        let error: any Error
        let domain: String
        let code: Int
        let isRestored: @Sendable (NSError) -> Bool

        var testDescription: String { "\(type(of: error))" }
    }

    private static let refused = SessionError.transport(TransportError(.cannotConnect(.refused)))

    private static let castables = [
        Castable(error: URLError(.timedOut, userInfo: ["k": 1]), domain: NSURLErrorDomain, code: -1001) {
            ($0 as? URLError)?.code == .timedOut && ($0 as any Error as? URLError)?.errorUserInfo["k"] as? Int == 1
        },
        Castable(error: refused, domain: refused._domain, code: refused._code) {
            ($0 as any Error as? SessionError)?.transport?.reason == .cannotConnect(.refused)
        },
        Castable(
            error: SerializationError.url(.noBase("x")), domain: "ANSerialization.SerializationError",
            code: SerializationError.url(.noBase("x"))._code
        ) {
            if case .url? = $0 as any Error as? SerializationError { true } else { false }
        },
        Castable(error: CocoaError(.fileNoSuchFile), domain: NSCocoaErrorDomain, code: 4) {
            ($0 as any Error as? CocoaError)?.code == .fileNoSuchFile
        },
        Castable(error: NSError(domain: "mine", code: 7), domain: "mine", code: 7) { $0.domain == "mine" },
    ]

    /// Casts a value; the compiler assumes that a cast of an error to `NSError` succeeds.
    private func cast<Original, Result>(_ value: Original, to _: Result.Type) -> Result? { value as? Result }

    @Test(arguments: castables)
    func `an error can be cast to NSError and back`(row: Castable) throws {
        let error = row.error
        let objects = try [
            #require(cast(error, to: NSError.self)), #require(error as Any as? NSError),
            #require(["error": error as Any]["error"] as? NSError),
            #require(cast(error, to: NSObject.self) as? NSError),
            #require(cast(error, to: AnyObject.self) as? NSError), error as NSError,
        ]
        for object in objects {
            #expect(object.domain == row.domain)
            #expect(object.code == row.code)
        }
        // The last one, of Foundation's `as NSError`, is a copy of the domain, the code and the user info.
        for object in objects.dropLast() {
            #expect(row.isRestored(object))
            #expect(object.localizedDescription == error.localizedDescription)
        }
        do {
            throw error
        } catch let error as NSError {
            #expect(error.code == row.code)
        }
    }

    @Test func `an error of another domain is not cast to an error of Foundation or of the core`() {
        let other = NSError(domain: "mine", code: -1001)
        let object: Any = other
        #expect(other as any Error as? URLError == nil)
        #expect(object as? URLError == nil)
        #expect(object as? SessionError == nil)
        #expect(URLError(.timedOut) as NSError as? SerializationError == nil)
        #expect((URLError(.timedOut) as NSError as any Error as? URLError)?.code == .timedOut)
        #expect(URLError._unconditionallyBridgeFromObjectiveC(other).code == .unknown)
    }

    @Test func `an NSError is caught as a URLError`() {
        do {
            throw NSError(domain: NSURLErrorDomain, code: -1003)
        } catch URLError.cannotFindHost {
        } catch {
            Issue.record(error)
        }
    }

    @Test func `the description of a failure is a sentence for users, and the diagnosis is in the underlying error`()
        async throws
    {
        let error = try #require(await outcome(of: Self.refused).handler)
        #expect(error.localizedDescription == "Could not connect to the server.")
        let underlying = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
        #expect(underlying.localizedDescription == "\(Self.refused)")
        #expect(await outcome(of: SessionError.invalidated).handler?.localizedDescription == "unknown error")
    }
}
