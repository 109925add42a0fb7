// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Strict transport security".

func requireTLS(_ api: SessionManager) {
    // snippet.the-hosts
    if let host = StrictTransportHost(host: "example.com", includesSubdomains: true) {
        api.strictTransport.set(host)
    }
    for known in api.strictTransport.entries { print(known.host, known.expiry) }
    api.strictTransport.remove("example.com")
    // snippet.end
}

func keepHosts(_ api: SessionManager) async throws {
    // snippet.files
    try api.strictTransport.load(from: "hosts.txt")
    _ = try await api.get("users/7")
    try api.strictTransport.save(to: "hosts.txt")
    // snippet.end
}
