// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

struct Repository: Decodable, Sendable {
    let name: String
    let description: String
}

let github = SessionManager(baseURL: URL(string: "https://api.github.com/"))
do {
    let swift = try await github.get("repos/swiftlang/swift", as: .decodable(Repository.self)).value
    print("\(swift.name): \(swift.description)")
} catch {
    print(error)
}
