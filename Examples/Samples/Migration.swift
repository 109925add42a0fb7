// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking

func migrationFirstCall() {
    // snippet.a-first-call
    let manager = AFHTTPSessionManager(baseURL: URL(string: "https://api.example.com/v1/"))
    manager.requestSerializer.setValue("application/json", forHTTPHeaderField: "Accept")
    manager.get("users/7", parameters: nil, headers: nil, progress: nil) { task, json in
        print(json ?? "nothing")
    } failure: { task, error in
        print(error.localizedDescription)
    }
    // snippet.end
    // snippet.callback-queues
    manager.completionQueue = DispatchQueue(label: "api")
    // snippet.end
}

func migrationSharing() async throws {
    // snippet.sharing-a-session
    let session = SessionManager(baseURL: URL(string: "https://api.example.com/v1/"))
    let legacy = AFHTTPSessionManager(session: session)
    legacy.get("users/7", parameters: nil, headers: nil, progress: nil, success: nil, failure: nil)
    let user = try await session.get("users/7", as: .json).value
    // snippet.end
    print(user)
}

func migrationOfOneCall(_ manager: AFHTTPSessionManager, _ session: SessionManager) async throws {
    // snippet.migrating-a-call
    let response = try await manager.get("users/7")
    let document = try await session.get("users/7", as: .json).value
    // snippet.end
    print(response.object ?? "nothing", document)
}

@MainActor final class ProgressModel {
    var fraction = 0.0
    var name = ""

    func load(_ manager: AFHTTPSessionManager) {
        // snippet.language-modes
        manager.get(
            "users/7", parameters: nil, headers: nil,
            progress: { progress in
                let fraction = progress.fractionCompleted
                Task { @MainActor in self.fraction = fraction }
            },
            success: { _, object in
                let name = (object as? [String: Any])?["name"] as? String ?? ""
                Task { @MainActor in self.name = name }
            })
        // snippet.end
    }
}

func migrationOfAResponse(_ manager: AFHTTPSessionManager) async throws {
    // snippet.a-response-in-a-task
    let task = Task {
        let response = try await manager.get("users/7")
        return (response.object as? [String: Any])?["name"] as? String
    }
    let name = try await task.value
    // snippet.end
    print(name ?? "nobody")
}

func migrationOfParameters(_ session: SessionManager, trend: String?) async throws {
    // snippet.parameters
    let parameters: [String: Any] = ["city": "Bern", "trend": trend as Any]
    _ = try await session.get("weather", parameters: Parameters(parameters))  // ?city=Bern&trend without a trend
    _ = try await session.get("weather", parameters: ["city": "Bern", "trend": trend])  // ?city=Bern
    // snippet.end
}

func migrationOfAPolicy(_ certificate: Data) -> SessionManager {
    // snippet.a-security-policy
    let policy = AFSecurityPolicy(pinningMode: .certificate, withPinnedCertificates: [certificate])
    let session = SessionManager(baseURL: URL(string: "https://api.example.com/v1/")) {
        $0.tls.policy = policy.policy
    }
    // snippet.end
    return session
}
