// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct ErrorLabelTests {
    /// Errors of each case and reason, with their labels.
    private static func labelled() throws -> [(any Error, String)] {
        let head = ResponseHead(status: .notFound, url: try url("http://a.example/"))
        let html = ResponseHead(
            status: .ok, headers: [.contentType: "text/html"], url: try url("http://a.example/"))
        let status = try #require(ResponseValidation.json.rejection(of: head, Data("{}".utf8)))
        let type = try #require(ResponseValidation.json.rejection(of: html, Data("x".utf8)))
        let reasons: [(TransportError.Reason, String)] = [
            (.invalidURL("x"), "invalid_url"), (.unsupportedScheme("ftp"), "unsupported_scheme"),
            (.invalidRequest("x"), "invalid_request"), (.unsupported("HTTP/3"), "unsupported"),
            (.timedOut(.connectivity), "timeout_connectivity"), (.timedOut(.queue), "timeout_queue"),
            (.timedOut(.nameLookup), "timeout_name_lookup"), (.timedOut(.connect), "timeout_connect"),
            (.timedOut(.tlsHandshake), "timeout_tls_handshake"), (.timedOut(.request), "timeout_request"),
            (.timedOut(.responseHead), "timeout_response_head"), (.timedOut(.responseBody), "timeout_response_body"),
            (.cannotResolve, "cannot_resolve"), (.cannotConnect(.refused), "connection_refused"),
            (.cannotConnect(.unreachable), "host_unreachable"), (.cannotConnect(.systemTimeout), "timeout_connect"),
            (.cannotConnect(.addressForbidden), "address_forbidden"), (.cannotConnect(.localAddress), "cannot_connect"),
            (.cannotConnect(.other), "cannot_connect"), (.proxy(.authenticationRequired), "proxy_refused"),
            (.proxy(.tunnelRefused(status: 403)), "proxy_refused"), (.proxy(.handshake), "proxy_failed"),
            (.proxy(.tls(.handshake)), "proxy_failed"), (.tls(.certificateExpired), "certificate_untrusted"),
            (.tls(.certificateNotYetValid), "certificate_untrusted"), (.tls(.selfSigned), "certificate_untrusted"),
            (.tls(.unknownAuthority), "certificate_untrusted"), (.tls(.wrongHost), "certificate_untrusted"),
            (.tls(.revoked), "certificate_untrusted"), (.tls(.revocationUnknown), "certificate_untrusted"),
            (.tls(.stapleMissing), "certificate_untrusted"), (.tls(.badStaple("x")), "certificate_untrusted"),
            (.tls(.wrongPurpose), "certificate_untrusted"), (.tls(.weakKey), "certificate_untrusted"),
            (.tls(.nameConstraints), "certificate_untrusted"), (.tls(.rejected("x")), "certificate_untrusted"),
            (.tls(.untrusted(verifyResult: 1)), "certificate_untrusted"),
            (.tls(.pinMismatch(expected: [])), "pin_mismatch"), (.tls(.certificateNotPinned), "pin_mismatch"),
            (.tls(.handshake), "tls_handshake"), (.tls(.clientCertificateRefused), "client_certificate"),
            (.tls(.noPins), "tls_configuration"), (.tls(.invalidWithoutPins), "tls_configuration"),
            (.tls(.badTrustRoots), "tls_configuration"), (.tls(.keyLog(path: "/x")), "tls_configuration"),
            (.connectionLost(.inHead), "connection_lost"), (.invalidResponse(.notHTTP), "invalid_response"),
            (.invalidContentEncoding, "invalid_content_encoding"),
            (.responseTooLarge(.body(limit: 1)), "response_too_large"), (.requestBody(.notReplayable), "request_body"),
            (.webSocketClosed(nil), "websocket_closed"), (.shutDown, "shut_down"),
            (.internalInconsistency("x"), "internal_inconsistency"),
        ]
        let documents: [(SerializationError, String)] = [
            (.url(.noHost("x")), "request_encoding"), (.rejected(status), "status_rejected"),
            (.rejected(type), "media_type_rejected"), (.emptyBody(status: 200, wanted: "Int"), "response_decoding"),
            (.text(.unknownCharset("x")), "response_decoding"), (.parts(.responseBoundary(nil)), "response_decoding"),
            (.compound([]), "response_decoding"),
        ]
        let digest = try #require(ContentDigest("sha256:" + String(repeating: "0", count: 64)))
        let sessions: [(SessionError, String)] = [
            (.redirect(.bodyNotReplayable), "redirect"), (.authentication(.bodyNotReplayable), "authentication"),
            (.invalidCookie(name: "x"), "cookie"), (.cookiesNotStored, "cookie"), (.notCached, "not_cached"),
            (.closedResponse(ofInterceptor: "X"), "closed_response"),
            (.file(.init(path: "/a", call: "open", errno: 2, message: "x")), "file"),
            (.notResumable(.changed), "not_resumable"),
            (.digest(expected: digest, found: digest, path: "/a", url: try url("http://a.example/")), "digest"),
            (.upload(.sourceChanged), "upload"), (.circuitOpen(host: "a.example", retryAfter: .zero), "circuit_open"),
            (.invalidated, "shut_down"),
        ]
        return reasons.flatMap { reason, label -> [(any Error, String)] in
            [(TransportError(reason), label), (SessionError.transport(TransportError(reason)), label)]
        }
            + documents.flatMap { error, label -> [(any Error, String)] in
                [(error, label), (SessionError.serialization(error), label)]
            } + sessions.map { ($0, $1) } + [(CancellationError(), "cancelled"), (Planned(number: 1), "other")]
    }

    @Test func `each error has its label, and each label has an error`() throws {
        var seen: Set<String> = []
        for (error, label) in try Self.labelled() {
            #expect(ErrorLabel(error).rawValue == label, "\(error)")
            seen.insert(ErrorLabel(error).rawValue)
        }
        #expect(Set(ErrorLabel.allCases.map(\.rawValue)).subtracting(seen) == [])
    }

    @Test func `labels are short words in lower case, for metrics`() {
        for label in ErrorLabel.allCases {
            #expect(label.rawValue.wholeMatch(of: /[a-z]+(_[a-z]+)*/) != nil && label.rawValue.count <= 24)
        }
        #expect(Set(ErrorLabel.allCases.map(\.rawValue)).count == ErrorLabel.allCases.count)
    }
}
