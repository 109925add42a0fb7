// SPDX-License-Identifier: MIT

// Reads a list page by page, until a page has no cursor, and stops when the reader stops.

import AsyncNetworking
import FoundationEssentials

struct Item: Decodable {
    let id: Int
    let title: String
}

struct Page: Decodable {
    let items: [Item]
    let next: String?
}

/// The items of all pages. A page is requested when the reader has read those before it.
func items(of api: SessionManager) -> some AsyncSequence<Item, any Error> {
    var (items, cursor, isLast): (ArraySlice<Item>, String?, Bool) = ([], nil, false)
    return AsyncThrowingStream<Item, any Error> {
        while items.isEmpty, !isLast {
            let parameters: Parameters = ["limit": 100, "cursor": cursor]
            let page = try await api.get("items", parameters: parameters, as: .decodable(Page.self)).value
            (items, cursor, isLast) = (page.items[...], page.next, page.next == nil)
        }
        return items.popFirst()
    }
}

let api = SessionManager(baseURL: URL(string: CommandLine.arguments[1])) {
    $0.retryPolicy = RetryPolicy(limit: 3)
}
for try await item in items(of: api).prefix(1_000) {
    print(item.id, item.title)
}
