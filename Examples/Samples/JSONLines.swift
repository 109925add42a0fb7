// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "JSON lines".

func readJSONLines(_ api: SessionManager, url: URL) async throws {
    // snippet.reading
    try await api.withResponse(for: Request(url: url)) { head, body in
        for try await change in body.jsonLines(of: Change.self) { print(change.row) }
    }
    // snippet.end
}

func skipInvalidLines(of body: ResponseBody) async throws {
    // snippet.invalid-lines
    let changes = body.jsonLines(of: Change.self) { failure in
        print("skipped:", failure)
    }
    // snippet.end
    for try await change in changes { print(change.row) }
}

func sendJSONLines(_ api: SessionManager, url: URL, changes: AsyncStream<Change>) async throws -> Int {
    // snippet.sending
    var request = Request(method: .post, url: url, body: .jsonLines(changes))
    request.headers[.contentType] = "application/jsonl"
    let response = try await api.data(for: request)
    // snippet.end
    return response.statusCode
}
