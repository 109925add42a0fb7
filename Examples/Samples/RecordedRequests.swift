// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Recorded requests".

func printCommand(_ api: SessionManager, _ report: Report) async throws {
    // snippet.curl
    let request = try api.request(.post, "reports?draft=1", body: .json(report))
    print(try await api.curlCommand(for: request))
    // snippet.end
}

struct Report: Codable {
    let title: String
    let password: String
}
