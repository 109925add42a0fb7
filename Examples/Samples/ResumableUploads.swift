// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Resumable uploads".

func uploadResumably(_ api: SessionManager) async throws {
    // snippet.overview
    let upload = api.upload("videos", body: .file("talk.mp4"), options: .resumable)
    for await progress in upload.progress { print(progress.fraction ?? 0) }
    print(try await upload.value.statusCode)
    // snippet.end
}

func uploadDurably(_ api: SessionManager) async throws {
    // snippet.durable
    let upload = api.upload("videos", body: .file("talk.mp4"), options: .durable)
    let response = try await upload.value
    // snippet.end
    print(response.statusCode)
}

func uploadInParts(_ api: SessionManager) async throws {
    // snippet.options
    let options = UploadOptions.durable.with {
        $0.uploadProtocol = .tus
        $0.partSize = 16 << 20
        $0.verifiesParts = true
    }
    let upload = api.upload("videos", body: .file("talk.mp4"), options: options)
    // snippet.end
    print(try await upload.value.statusCode)
}

func uploadPatiently(_ api: SessionManager, url: URL) async throws {
    // snippet.retries
    var request = Request(method: .put, url: url, body: .file("talk.mp4"))
    request.retryPolicy = RetryPolicy(limit: 20).with { $0.deadline = .seconds(3_600) }
    do {
        _ = try await api.upload(request, options: .durable).value
    } catch SessionError.upload(.sourceChanged) {
        print("Upload the new version.")
    }
    // snippet.end
}
