// SPDX-License-Identifier: MIT

// Posts the same parameters in several encodings and prints the requests that the server receives:
//
//     swift run PostForm          to a server in this process
//     swift run PostForm URL      to another server

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

struct Order: Encodable {
    var customerName = "Ada Lovelace"
    var items = ["tea", "cake & jam"]
    var isGift = true
    var placedAt = Date(timeIntervalSince1970: 1_700_000_000)
    var note: String?
}

let serializers: [(String, any RequestSerializer)] = [
    ("as AFNetworking encodes it", .http),
    (
        "with options",
        HTTPRequestSerializer(
            encoder: URLEncodedFormEncoder().with {
                $0.arrays = .indexed
                $0.usesBooleanWords = true
                $0.dates = .iso8601
                $0.keys = .snakeCase
                $0.encodesSpacesAsPlus = true
            })
    ),
    ("as JSON", JSONRequestSerializer()),
    ("as a property list", .propertyList),
]

func post(_ url: URL) async throws {
    let parameters = try Parameters(encoding: Order())
    for (words, serializer) in serializers {
        let api = SessionManager { $0.requestSerializer = serializer }
        let response = try await api.post(url.absoluteString, parameters: parameters, as: .string)
        print("\(words):\n\(response.value)\n")
    }
    var request = Request(method: .post, url: url, body: .string(String(repeating: "tea, ", count: 1_000)))
    request.compressBody()
    print("compressed:\n\(try await SessionManager().value(for: request, as: .string))")
}

do {
    if let argument = CommandLine.arguments.dropFirst().first {
        guard let url = URL(string: argument) else { throw CancellationError() }
        try await post(url)
    } else {
        try await StubServer.with { server in
            server.fallback { request in
                let coding = request.headers["Content-Encoding"]
                let type = request.headers["Content-Type"] ?? "no type"
                return .text(coding.map { "\(request.body.count) bytes of \($0)" } ?? "\(type)\n\(request.text)")
            }
            try await post(server.url("/orders"))
        }
    }
} catch {
    print(error)
}
