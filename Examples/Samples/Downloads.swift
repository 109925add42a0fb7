// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Downloads that survive".

func downloadFile(_ api: SessionManager) async throws {
    // snippet.overview
    let download = api.download("images/disk.iso", to: "disk.iso")
    print(try await download.value.size)
    // snippet.end
}

func downloadOverALossyLink(_ request: Request, _ api: SessionManager) async throws {
    var request = request
    // snippet.continuing
    request.retryPolicy = RetryPolicy(limit: 10)
    let file = try await api.download(request, to: "disk.iso").value
    // snippet.end
    print(file.path)
}

func downloadCarefully(_ api: SessionManager) async throws {
    // snippet.destinations
    let destination = DownloadDestination.file(
        "out/disk.iso", overwritesExisting: false, createsIntermediateDirectories: true)
    _ = try await api.download("images/disk.iso", to: destination).value
    // snippet.end
}

func chooseDestination(_ api: SessionManager) async throws {
    // snippet.destinations-2
    let chosen = DownloadDestination.chosen { file in
        "downloads/" + (file.response.head.mediaType == "application/zip" ? "archive.zip" : "other")
    }
    // snippet.end
    _ = try await api.download("images/disk.iso", to: chosen).value
}

func goOn(_ api: SessionManager, _ download: DownloadTask) async throws {
    // snippet.resuming
    do {
        _ = try await download.value
    } catch let error as SessionError {
        guard let data = error.resumeData else { throw error }
        _ = try await api.download(resuming: data).value
    }
    // snippet.end
}

func pause(_ download: DownloadTask) async -> ResumeData? {
    // snippet.resuming-2
    let data = await download.cancelProducingResumeData()
    // snippet.end
    return data
}

func goOnStrictly(_ api: SessionManager, _ data: ResumeData) async throws {
    // snippet.resuming-3
    let strict = DownloadOptions().with { $0.startsOverIfNotResumable = false }
    _ = try await api.download(resuming: data, options: strict).value
    // snippet.end
}

func goOnElsewhere(_ api: SessionManager, _ data: ResumeData, _ newURL: URL) async throws {
    // snippet.resuming-4
    _ = try await api.download(resuming: data, with: Request(url: newURL)).value
    // snippet.end
}

func downloadDurably(_ api: SessionManager) async throws {
    // snippet.durable-downloads
    let download = api.download("images/disk.iso", to: "disk.iso", options: .durable)
    // snippet.end
    _ = try await download.value
}

func restore(_ api: SessionManager, in directory: String, token: String) throws -> [DownloadTask] {
    // snippet.durable-downloads-2
    let tasks = try api.restoredDownloads(in: directory) { request in
        // The directory may contain downloads from other servers, which must not get the token.
        guard request.url.absoluteString.hasPrefix("https://api.example.com/") else { return }
        request.headers[.authorization] = "Bearer \(token)"
    }
    for task in tasks { task.resume() }
    // snippet.end
    return tasks
}

func verify(_ api: SessionManager) async throws {
    // snippet.digests
    let options = DownloadOptions.durable.with {
        $0.expectedDigest = ContentDigest("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
    }
    // snippet.end
    _ = try await api.download("images/disk.iso", to: "disk.iso", options: options).value
}
