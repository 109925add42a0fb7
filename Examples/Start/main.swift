// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

struct Project: Decodable {
    let description: String
}

let root = "https://api.github.com/"
let github = SessionManager(
    baseURL: URL(string: root))
do {
    let swift = try await github.get(
        "repos/swiftlang/swift",
        as: .decodable(Project.self)
    ).value
    print(swift.description)
} catch {
    print(error)
}
