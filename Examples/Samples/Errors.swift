// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Errors".

func askQuestions(_ api: SessionManager) async throws -> User? {
    // snippet.overview
    do {
        return try await api.get("users/7", as: .decodable(User.self)).value
    } catch let error as SessionError {
        if error.statusCode == 404 { return nil }
        if error.isTimeout || error.isConnectionFailure { print("Try again later: \(error)") }
        if error.isTrustFailure { print("No trusted connection: \(error)") }
        throw error
    }
    // snippet.end
}

struct Problem: Decodable, Sendable {
    let title: String
}

func readErrorDocument(_ api: SessionManager) async throws {
    // snippet.rejected-responses
    do {
        _ = try await api.get("users/7", as: .json)
    } catch let error as SessionError {
        guard let rejection = error.rejection else { throw error }
        print(rejection.head.status.code, try rejection.decoded(as: Problem.self).title)
    }
    // snippet.end
}

func readContext(_ api: SessionManager) async throws {
    // snippet.details-of-a-failure
    do {
        _ = try await api.get("users/7")
    } catch let error as SessionError where error.isTimeout {
        print(error.context?.address?.description ?? "not connected", error.context?.elapsed ?? .zero)
    } catch let error as SessionError where error.reason == .tls(.certificateExpired) {
        print("The certificate of \(error.context?.host ?? "the server") has expired.")
    }
    // snippet.end
}

func reportFailure(_ api: SessionManager) async throws {
    // snippet.timeline
    do {
        _ = try await api.get("report")
    } catch let error as SessionError {
        print(error.label, error.timeline)
    }
    // snippet.end
}
