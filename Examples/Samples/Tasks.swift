// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Tasks".

func startTask(_ api: SessionManager, url: URL) async throws {
    // snippet.overview
    let task = api.makeDataTask(for: Request(url: url), as: .json)
    task.tags = ["search"]
    task.resume()
    let response = try await task.value
    print(response.statusCode, response.value)
    // snippet.end
}

func downloadWithinScope(_ api: SessionManager, url: URL) async throws {
    // snippet.scoped-tasks
    try await api.withDownload(Request(url: url), to: "disk.iso") { download in
        for await progress in download.progress { print(progress.fraction ?? 0) }
        print(try await download.value.size)
    }
    // snippet.end
}

func watchEvents(_ task: DataTask) async {
    // snippet.status-and-events
    for await event in task.events {
        if case .exchange(_, .started(let request)) = event { print(request) }
    }
    // snippet.end
}

func startMany(_ urls: [URL]) async throws {
    // snippet.many-tasks
    let api = SessionManager { $0.maximumConcurrentTasks = 4 }
    let tasks = urls.map { api.makeDataTask(for: Request(url: $0)) }
    tasks.last?.priority = .high
    let group = SessionTaskGroup(tasks)
    group.resume()
    try await group.waitForAll()
    // snippet.end
}

func steerMany(_ api: SessionManager) {
    // snippet.many-tasks-2
    api.taskGroup(tagged: "search").cancel()
    api.taskGroup { $0.request?.url.path.hasPrefix("/v1/images/") == true }.suspend()
    // snippet.end
}
