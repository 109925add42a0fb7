// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Caching".

func switchOnTheCache() -> SessionManager {
    // snippet.overview
    let api = SessionManager { $0.cache = .standard }
    // snippet.end
    return api
}

func chooseCaches() -> [SessionManager] {
    // snippet.capacities
    let inMemory = SessionManager {
        $0.cache = .memory(8 << 20)
    }
    let onDisk = SessionManager {
        $0.cache = .disk("/var/cache/feeds", capacity: 1 << 30)
        $0.cachePartition = "ada"
    }
    // snippet.end
    return [inMemory, onDisk]
}

func usePolicies(_ api: SessionManager) async throws {
    // snippet.policies
    var request = try api.request(.get, "feed")
    request.cachePolicy = .returnCacheElseLoad
    let response = try await api.data(for: request)
    if response.metrics.source == .stale { print("old") }
    // snippet.end
}

func decideWhatIsStored() -> SessionManager {
    // snippet.will-cache
    let api = SessionManager {
        $0.cache = .standard
        $0.willCache = { proposal in
            guard proposal.body.count < 1_000_000 else { return nil }
            var proposal = proposal
            proposal.head.headers[.cacheControl] = "max-age=3600"
            return proposal
        }
    }
    // snippet.end
    return api
}

func manageTheCache(_ cache: ResponseCache, profile: URL) async {
    // snippet.contents
    cache.remove(profile)
    print(cache.usage.entries, cache.usage.diskBytes)
    for entry in await cache.entries() { print(entry.url, entry.bodySize) }
    cache.removeAll()
    // snippet.end
}

func shareTransfers() -> SessionManager {
    // snippet.shared-transfers
    let api = SessionManager {
        $0.cache = .standard
        $0.coalescesRequests = true
    }
    // snippet.end
    return api
}
