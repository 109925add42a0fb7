// SPDX-License-Identifier: MIT

/// What the built-in server has at `users/7`.
struct User: Codable, Equatable, Sendable {
    var id: Int
    var name: String
    var languages: [String]
}
