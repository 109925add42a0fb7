// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Cancellation".

private struct Hit: Decodable, Sendable {
    let title: String
}

func search(_ api: SessionManager, text: String) async throws {
    // snippet.overview
    let search = Task {
        try await api.get("search", parameters: ["text": text], timeout: .seconds(5), as: .decodable([Hit].self)).value
    }
    // Later, when the user has changed the text:
    search.cancel()
    do {
        print(try await search.value.map(\.title))
    } catch is CancellationError {
        // The program wanted it; there is nothing to report.
    } catch let error as SessionError where error.isTimeout {
        print("The server needs too long.")
    }
    // snippet.end
}

func askBoth(_ api: SessionManager, _ first: URL, _ second: URL) async throws {
    // snippet.first-answer
    let answer = try await withThrowingTaskGroup { group in
        for url in [first, second] {
            group.addTask { try await api.get(url, as: .string).value }
        }
        defer { group.cancelAll() }
        return try await group.next()
    }
    print(answer ?? "")
    // snippet.end
}

func stopDownload(_ api: SessionManager) async throws {
    // snippet.tasks
    let download = api.download("disk.iso", to: "disk.iso")
    try await Task.sleep(for: .seconds(10))
    if let rest = await download.cancelProducingResumeData() {
        _ = try await api.download(resuming: rest, to: "disk.iso").value
    }
    // snippet.end
}
