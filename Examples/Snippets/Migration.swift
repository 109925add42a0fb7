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
