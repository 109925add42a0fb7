// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Downloads that survive".

func downloadFile(_ api: SessionManager) async throws {
    let download = api.download("images/disk.iso", to: "disk.iso")
    print(try await download.value.size)
}

func downloadCarefully(_ api: SessionManager) async throws {
    let destination = DownloadDestination.file(
        "out/disk.iso", overwritesExisting: false, createsIntermediateDirectories: true)
    _ = try await api.download("images/disk.iso", to: destination).value
}

func chooseDestination(_ api: SessionManager) async throws {
    let chosen = DownloadDestination.chosen { file in
        "downloads/" + (file.response.head.mediaType == "application/zip" ? "archive.zip" : "other")
    }
    _ = try await api.download("images/disk.iso", to: chosen).value
}

func goOn(_ api: SessionManager, _ download: DownloadTask) async throws {
    do {
        _ = try await download.value
    } catch let error as SessionError {
        guard let data = error.resumeData else { throw error }
        _ = try await api.download(resuming: data).value
    }
}

func pause(_ download: DownloadTask) async -> ResumeData? {
    let data = await download.cancelProducingResumeData()
    return data
}

func goOnStrictly(_ api: SessionManager, _ data: ResumeData) async throws {
    let strict = DownloadOptions().with { $0.whenNotResumable = .fail }
    _ = try await api.download(resuming: data, options: strict).value
}

func goOnElsewhere(_ api: SessionManager, _ data: ResumeData, _ newURL: URL) async throws {
    _ = try await api.download(resuming: data, with: Request(url: newURL)).value
}

func downloadDurably(_ api: SessionManager) async throws {
    let download = api.download("images/disk.iso", to: "disk.iso", options: .durable)
    _ = try await download.value
}

func restore(_ api: SessionManager, token: String) throws {
    for task in try api.restoredDownloads(in: "downloads", preparing: { $0.headers[.authorization] = token }) {
        task.resume()
    }
}

func verify(_ api: SessionManager) async throws {
    let options = DownloadOptions.durable.with {
        $0.expectedDigest = ContentDigest("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
    }
    _ = try await api.download("images/disk.iso", to: "disk.iso", options: options).value
}
