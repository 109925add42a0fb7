// SPDX-License-Identifier: MIT

// Reads a list page by page. A page is requested when the reader has read those before it.

import AsyncNetworking
import FoundationEssentials
import Glibc

struct Page: Decodable {
    let titles: [String]
    let next: String?
}

struct Titles: AsyncSequence {
    let api: SessionManager

    struct Iterator: AsyncIteratorProtocol {
        let api: SessionManager
        var page: Page?
        var index = 0

        mutating func next() async throws -> String? {
            while index == page?.titles.count ?? 0 {
                if let page, page.next == nil { return nil }
                let parameters: Parameters = ["limit": 100, "cursor": page?.next]
                page = try await api.get("titles", parameters: parameters, as: .decodable(Page.self)).value
                index = 0
            }
            defer { index += 1 }
            return page?.titles[index]
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(api: api) }
}

guard CommandLine.arguments.count == 2 else {
    print("usage: https://…/")
    exit(2)
}
let api = SessionManager(baseURL: URL(string: CommandLine.arguments[1])) { $0.retryPolicy = RetryPolicy(limit: 3) }
for try await title in Titles(api: api).prefix(1_000) {
    print(title)
}
