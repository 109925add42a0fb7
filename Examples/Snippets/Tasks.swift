// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Tasks".

func startTask(_ api: SessionManager, url: URL) async throws {
    let task = api.makeDataTask(for: Request(url: url), as: .json)
    task.tags = ["search"]
    task.resume()
    let response = try await task.value
    print(response.statusCode, response.value)
}

func downloadWithinScope(_ api: SessionManager, url: URL) async throws {
    try await api.withDownload(Request(url: url), to: "disk.iso") { download in
        for await progress in download.progress { print(progress.fraction ?? 0) }
        print(try await download.value.size)
    }
}

func watchEvents(_ task: DataTask) async {
    for await event in task.events {
        if case .request(let request) = event { print(request) }
    }
}

func startMany(_ urls: [URL]) async throws {
    let api = SessionManager { $0.maximumConcurrentTransfers = 4 }
    let tasks = urls.map { api.makeDataTask(for: Request(url: $0)) }
    tasks.last?.priority = .high
    let group = TransferGroup(tasks)
    group.resume()
    try await group.waitForAll()
}

func steerMany(_ api: SessionManager) {
    api.transfers(tagged: "search").cancel()
    api.transfers { $0.request?.url.path.hasPrefix("/v1/images/") == true }.suspend()
}
