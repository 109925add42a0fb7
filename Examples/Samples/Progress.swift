// SPDX-License-Identifier: MIT

import AsyncNetworking

// The samples of the article "Progress", and of README.md.

func download(_ api: SessionManager) async throws {
    // snippet.overview
    let download = api.download("images/disk.iso", to: "disk.iso")
    for await progress in download.progress {
        print(progress.completedBytes, "of", progress.totalBytes.map(String.init) ?? "?")
        if let left = progress.timeLeft { print(left, "left") }
    }
    let file = try await download.value
    print(file.path, file.size)
    // snippet.end
}

func downloadWithProgress(_ api: SessionManager) async throws {
    // snippet.readme
    let download = api.download("disk.iso", to: "disk.iso")
    for await progress in download.progress {
        print(progress.fraction ?? 0)
    }
    let file = try await download.value
    // snippet.end
    print(file.size)
}

func watchGroup(_ tasks: [DownloadTask]) async {
    // snippet.several-tasks
    let group = SessionTaskGroup(tasks)
    for await progress in group.progress { print(progress.fraction ?? 0) }
    // snippet.end
}
