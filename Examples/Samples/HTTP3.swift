// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "HTTP/3 and alternative services".

func chooseVersion(_ url: URL) async throws {
    // snippet.policies
    let api = SessionManager { $0.httpVersion = .http3 }
    let response = try await api.get(url)
    print(response.head.version)  // HTTP/3, or an earlier version
    _ = try await api.get(url, options: { $0.httpVersion = .http3Only })
    // snippet.end
}

func forgetServices(_ api: SessionManager) {
    // snippet.services
    for service in api.alternativeServices.entries { print(service.host, service.alternativePort, service.expiry) }
    api.alternativeServices.remove("example.com")
    api.alternativeServices.removeAll()
    // snippet.end
}

func keepServices(_ api: SessionManager) async throws {
    // snippet.files
    try api.alternativeServices.load(from: "services.txt")
    _ = try await api.get("users/7")
    try api.alternativeServices.save(to: "services.txt")
    // snippet.end
}
