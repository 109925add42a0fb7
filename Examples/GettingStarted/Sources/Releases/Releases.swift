// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

/// A release of a repository.
public struct Release: Decodable, Sendable {
    /// The name of its tag.
    public let tagName: String
    /// When it was published.
    public let publishedAt: Date
}

/// A client of GitHub.
public struct Releases: Sendable {
    private let api: SessionManager

    /// Creates a client; tests pass a closure that sets another transport.
    public init(configure: (inout SessionConfiguration) -> Void = { _ in }) {
        let base = URL(string: "https://api.github.com/")
        var configuration = SessionConfiguration(baseURL: base) {
            $0.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
            $0.retryPolicy = RetryPolicy(limit: 3)
            $0.timeouts.total = .seconds(30)
        }
        configure(&configuration)
        api = SessionManager(configuration)
    }

    /// Returns the latest release; `nil` if the repository has none.
    public func latest(of repository: String) async throws -> Release? {
        do {
            let path = "repos/\(repository)/releases/latest"
            return try await api.get(path, as: .decodable(Release.self)).value
        } catch let error as SessionError where error.statusCode == 404 {
            return nil
        }
    }
}
