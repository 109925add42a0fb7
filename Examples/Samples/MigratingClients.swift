// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Migrating from async-http-client".

func requestAsBefore(_ url: URL, _ file: URL) async throws {
    // snippet.overview
    let api = SessionManager()

    // let response = try await client.execute(request, timeout: .seconds(30))
    // let body = try await response.body.collect(upTo: 1 << 20)
    var request = Request(url: url)
    request.timeout = .seconds(30)
    request.changeOptions { $0.maximumBodySize = 1 << 20 }
    let response = try await api.data(for: request)
    print(response.statusCode, response.value.count)

    // The same with a check of the status and the media type, and a decoded value.
    let user = try await api.value(for: request, as: .decodable(User.self))
    print(user.name)

    // for try await buffer in response.body { … }
    try await api.withResponse(for: Request(url: file), validating: .statusOnly) { head, body in
        for try await chunk in body { print(head.status, chunk.count) }
    }
    // snippet.end
}
