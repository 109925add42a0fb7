// SPDX-License-Identifier: MIT

#if Observability
    import AsyncNetworking
    import AsyncNetworkingObservability
    import AsyncNetworkingTesting
    import FoundationEssentials
    import HTTPTypes
    import Testing

    /// Places where a secret can be, none of which may reach a log, a metric or a span.
    @Suite struct SecretsTests {
        private static let secret = "hunter2"

        struct Place: Sendable, CustomTestStringConvertible {
            let testDescription: String
            var url = "http://a.example/x"
            var response = MockResponse.text("end")
            var change: @Sendable (inout Request) throws -> Void = { _ in }

            init(
                _ name: String, url: String = "http://a.example/x", response: MockResponse = .text("end"),
                change: @escaping @Sendable (inout Request) throws -> Void = { _ in }
            ) {
                testDescription = name
                self.url = url
                self.response = response
                self.change = change
            }

            init(_ name: String, failing reason: TransportError.Reason, message: String? = nil) {
                var context = FailureContext()
                context.message = message
                self.init(name, response: .failure(TransportError(reason, context: context)))
            }
        }

        private struct Planned: Error, CustomStringConvertible {
            var description: String { "The key \(secret) is wrong." }
        }

        private static func redirect(to location: String) -> MockResponse { .redirect(.found, to: location) }

        private static func header(_ name: String, _ value: String = secret) -> @Sendable (inout Request) throws -> Void
        {
            { request in request.headers[try #require(HTTPField.Name(name))] = value }
        }

        static let places: [Place] = [
            Place("user", url: "http://\(secret):x@a.example/x"),
            Place("password", url: "http://u:\(secret)@a.example/x"),
            Place("value of a query", url: "http://a.example/x?page=\(secret)"),
            Place("query without a name", url: "http://a.example/x?\(secret)"),
            Place("second value of a query", url: "http://a.example/x?a=1&b=\(secret)#c"),
            Place("fragment", url: "http://a.example/x#\(secret)"),
            Place("path parameter", url: "http://a.example/x;jsessionid=\(secret)/y"),
            Place("Authorization", change: header("Authorization", "Bearer \(secret)")),
            Place("Proxy-Authorization", change: header("Proxy-Authorization", "Basic \(secret)")),
            Place("Cookie", change: header("Cookie", "sid=\(secret)")),
            Place("header field", change: header("X-Api-Key")),
            Place("Referer", change: header("Referer", "http://b.example/?q=\(secret)")),
            Place("Host, and thus SNI", change: header("Host", "\(secret).example")),
            Place("credential") { $0.credential = Credential(user: "u", password: secret) },
            Place("credential of a proxy") {
                $0.changeOptions {
                    let credential = Credential(user: "u", password: secret)
                    $0.proxy = .proxy(Proxy(.http, host: "p.example", port: 1, credential: credential))
                }
            },
            Place("JSON body") { ($0.method, $0.body) = (.post, .json(["password": secret])) },
            Place("text body") { ($0.method, $0.body) = (.post, .string(secret)) },
            Place("name of a file") { ($0.method, $0.body) = (.post, .file("/nowhere/\(secret)")) },
            Place("trailer field") {
                ($0.method, $0.body) = (.post, .string("x"))
                $0.trailers = { [.eTag: secret] }
            },
            Place("response field", response: MockResponse(headers: [.setCookie: "sid=\(secret)"])),
            Place("response body", response: .text(secret)),
            Place("rejected body", response: .text(secret, status: .unauthorized)),
            Place("malformed body", response: .json("{\"token\":\"\(secret)\"")),
            Place("challenge", response: .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\(secret)"])),
            Place("query of a redirect", response: redirect(to: "http://b.example/?code=\(secret)")),
            Place("user of a redirect", response: redirect(to: "http://\(secret)@b.example/")),
            Place("path parameter of a redirect", response: redirect(to: "/y;sid=\(secret)")),
            Place("redirect to another scheme", response: redirect(to: "ftp://a.example/?q=\(secret)")),
            Place("malformed header line", failing: .invalidResponse(.headerLine("Set-Cookie \(secret)"))),
            Place(
                "message of libcurl", failing: .invalidResponse(.notHTTP), message: "Header without colon: \(secret)"),
            Place("invalid URL", failing: .invalidURL("http://\(secret)@")),
            Place("reason of a closure", failing: .webSocketClosed(WebSocketClosure(code: 4000, reason: secret))),
            Place("refusal of an evaluator", failing: .tls(.rejected("the key is not \(secret)"))),
            Place("source of a body", failing: .requestBody(.source(Planned()))),
            Place("error of the program", response: .failure(Planned())),
        ]

        @Test func `there are at least 30 places`() { #expect(Self.places.count >= 30) }

        @Test(arguments: places)
        func `a secret does not reach a log, a metric or a span`(place: Place) async throws {
            let backends = Backends()
            let session = backends.session(on: MockTransport(place.response)) {
                $0.redirectPolicy.maximum = 2
                $0.retryPolicy = RetryPolicy(limit: 1)
                $0.retryPolicy.backoff = Backoff(base: .zero)
            }
            var request = Request(url: try #require(URL(string: place.url)))
            try place.change(&request)
            _ = try? await session.value(for: request, as: .decodable([String: String].self))
            _ = try? await session.download(request, to: "/nowhere/\(Self.secret)").value
            let seen = backends.lines + backends.spans + backends.details + backends.values
            #expect(backends.lines.count >= 2 && backends.spans.count >= 2)
            for line in seen { #expect(!line.contains(Self.secret), "\(line)") }
        }
    }
#endif
