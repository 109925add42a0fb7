// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.servers(.nginx, .nginxTLS), .timeLimit(.minutes(5))) struct CachingTests {
    private static let dialects: [Dialect] = [.http1, .http2OverTLS]

    private func source(
        _ manager: SessionManager, _ path: String, _ headers: HTTPFields = [:]
    ) async throws -> ResponseSource {
        let response = try await manager.data(for: try manager.request(.get, path, headers: headers))
        #expect(response.statusCode == 200)
        #expect(response.value.count == 59)
        return response.metrics.source
    }

    @Test(arguments: dialects)
    func `a response of nginx with expires and Vary is used for its language, and validated for another one`(
        dialect: Dialect
    ) async throws {
        let manager = try dialect.manager { $0.cache = .memory() }
        let path = "cache/fresh/small.json"
        #expect(try await source(manager, path, [.acceptLanguage: "de"]) == .network)
        #expect(try await source(manager, path, [.acceptLanguage: "de"]) == .cache)
        // nginx confirms the tag of the German response, which stays the German one.
        #expect(try await source(manager, path, [.acceptLanguage: "en"]) == .validated)
        #expect(try await source(manager, path, [.acceptLanguage: "de"]) == .cache)
        #expect(try await source(manager, path, [.acceptLanguage: "en"]) == .validated)
    }

    @Test(arguments: dialects)
    func `a response of nginx with an ETag and no-cache is validated on each use`(dialect: Dialect) async throws {
        let manager = try dialect.manager { $0.cache = .memory() }
        for expected in [ResponseSource.network, .validated, .validated] {
            #expect(try await source(manager, "cache/validated/small.json") == expected)
        }
    }

    @Test(arguments: dialects)
    func `a response of nginx compressed with gzip is stored decoded, and validated by its weak tag`(
        dialect: Dialect
    ) async throws {
        let manager = try dialect.manager {
            $0.cache = .memory()
            $0.cachePolicy = .revalidate
        }
        #expect(try await source(manager, "gzip/small.json") == .network)
        #expect(try await source(manager, "gzip/small.json") == .validated)
    }
}
