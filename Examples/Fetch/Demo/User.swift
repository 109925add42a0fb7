// SPDX-License-Identifier: MIT

/// The user that the server in this process returns for `users/7`.
struct User: Codable, Equatable, Sendable {
    var id: Int
    var name: String
    var languages: [String]
}
