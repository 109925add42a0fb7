// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import CCurl
import Testing

@Suite struct AlternativeFailureTests {
    @Test(
        arguments: [
            (.none, "h2", .http2, .http2), (.none, "http/1.1", .http1_1, .http1_1), (.none, "", .http1_1, .http1_1),
            (.none, nil, .http2, .http2), (.possible, "h2", .http2, .http2), (.possible, "", .http1_1, .http1_1),
            (.possible, "h3", .http3, .http3), (.possible, nil, .http3, .http2), (.certain, "h3", .http3, .http3),
            (.certain, "h3-29", .http3, .http3), (.certain, nil, .http3, .http3),
        ] as [(QUICUse, String?, HTTPVersion, HTTPVersion)])
    func `a session that is not accessible is one of QUIC`(
        use: QUICUse, protocolID: String?, version: HTTPVersion, versionWithoutOpenSSL: HTTPVersion
    ) {
        #expect(use.version(protocolID: protocolID, usesOpenSSL: true) == version)
        #expect(use.version(protocolID: protocolID, usesOpenSSL: false) == versionWithoutOpenSSL)
    }

    private typealias Verdict = AlternativeFailure.Verdict

    private static func verdict(
        _ cause: AlternativeFailure.Cause, isRacing: Bool, isOnHTTP3: Bool, attempts: Int = 0, isNew: Bool = true
    ) -> Verdict {
        AlternativeFailure(cause: cause, isRacing: isRacing, isOnHTTP3: isOnHTTP3, attempts: attempts)
            .verdict { isNew }
    }

    @Test func `a connection that is not made in time is given up for the origin's own`() {
        #expect(Self.verdict(.connectLimit, isRacing: false, isOnHTTP3: false) == .failedAndLeft)
    }

    @Test(arguments: [(true, false, false), (true, true, true), (false, false, true), (false, true, true)])
    func `another limit is a failure unless TCP may have won the race`(
        isRacing: Bool, isOnHTTP3: Bool, isFailure: Bool
    ) {
        #expect(Self.verdict(.limit, isRacing: isRacing, isOnHTTP3: isOnHTTP3) == (isFailure ? .failed : .none))
    }

    @Test(
        arguments: [
            CURLE_COULDNT_RESOLVE_HOST, CURLE_OPERATION_TIMEDOUT, CURLE_ABORTED_BY_CALLBACK, CURLE_OUT_OF_MEMORY,
            CURLE_INTERFACE_FAILED,
        ].map(\.rawValue))
    func `an error that the origin would have met too says nothing`(code: UInt32) {
        for attempts in 0...2 {
            let cause = AlternativeFailure.Cause.error(CURLcode(rawValue: code))
            #expect(Self.verdict(cause, isRacing: false, isOnHTTP3: true, attempts: attempts) == .none)
        }
    }

    @Test(arguments: [false, true]) func `a lack of descriptors leaves the alternative without blame`(isRacing: Bool) {
        #expect(Self.verdict(.noSocket, isRacing: isRacing, isOnHTTP3: false) == .left)
    }

    @Test func `a race that failed has failed both ways`() {
        #expect(Self.verdict(.error(CURLE_COULDNT_CONNECT), isRacing: true, isOnHTTP3: false) == .none)
    }

    @Test func `an alternative service that cannot be connected to is left`() {
        #expect(Self.verdict(.error(CURLE_COULDNT_CONNECT), isRacing: false, isOnHTTP3: false) == .failedAndLeft)
    }

    @Test(
        arguments: [
            (1, true, .failedAndLeft), (1, false, .left), (2, true, .failed), (2, false, .none),
        ] as [(Int, Bool, AlternativeFailure.Verdict)], [false, true])
    func `a lost connection is a failure if it was new, and the request is sent again once`(
        _ attempt: (attempts: Int, isNew: Bool, expected: AlternativeFailure.Verdict), isRacing: Bool
    ) {
        let verdict = Self.verdict(
            .error(CURLE_RECV_ERROR), isRacing: isRacing, isOnHTTP3: true, attempts: attempt.attempts,
            isNew: attempt.isNew)
        #expect(verdict == attempt.expected)
    }

    @Test func `a connection without HTTP/3 is not the alternative service's`() {
        #expect(Self.verdict(.error(CURLE_RECV_ERROR), isRacing: true, isOnHTTP3: false, attempts: 1) == .none)
    }
}
