// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Uploads and downloads".

func download(_ api: SessionManager) async throws {
    let download = await api.download("images/disk.iso", to: "disk.iso")
    for await progress in download.progress {
        print(progress.completedBytes, "of", progress.totalBytes.map(String.init) ?? "?")
    }
    let file = try await download.value.value
    print(file.path, file.size)
}

func upload(_ api: SessionManager) async throws {
    let upload = await api.upload("images/disk.iso", from: .file("disk.iso"), method: .put)
    for await progress in upload.progress { print(progress.fraction ?? 0) }
    print(try await upload.value.statusCode)
}

func cancel(_ download: DownloadTask) async throws {
    download.cancel()
    do {
        _ = try await download.value
    } catch is CancellationError {
        print("No file was left.")
    }
}

func sendForm(_ api: SessionManager, url: URL) async throws {
    var form = MultipartFormData()
    form.append("Ada", name: "user")
    try form.append(file: "/tmp/portrait.png", name: "portrait")
    let (contentType, body) = try form.makeBody()
    let request = Request(method: .post, url: url, headers: [.contentType: contentType], body: body)
    print(try await api.data(for: request).statusCode)
}
