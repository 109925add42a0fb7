// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Errors".

func askQuestions(_ api: SessionManager) async throws -> User? {
    do {
        return try await api.get("users/7", as: .decodable(User.self)).value
    } catch let error as SessionError {
        if error.statusCode == 404 { return nil }
        if error.isTimeout || error.isConnectionFailure { print("Try again later: \(error)") }
        if error.isTrustFailure { print("Do not try again: \(error)") }
        throw error
    }
}

struct Problem: Decodable, Sendable {
    let title: String
}

func readErrorDocument(_ api: SessionManager) async throws {
    do {
        _ = try await api.get("users/7", as: .json)
    } catch let error as SessionError {
        guard let rejection = error.rejection else { throw error }
        print(rejection.status, try rejection.decoded(as: Problem.self).title)
    }
}

func readContext(_ api: SessionManager) async throws {
    do {
        _ = try await api.get("users/7")
    } catch SessionError.transport(.timedOut(let phase, let limit, let context)) {
        print(phase, limit, context.address?.description ?? "not connected", context.elapsed)
    } catch SessionError.transport(.tls(.certificateExpired, let context)) {
        print("The certificate of \(context.host ?? "the server") has expired.")
    }
}
