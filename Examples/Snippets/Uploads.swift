// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Uploads".

func upload(_ api: SessionManager) async throws {
    // snippet.overview
    let upload = api.upload("images/disk.iso", body: .file("disk.iso"), method: .put)
    for await progress in upload.progress { print(progress.fraction ?? 0) }
    print(try await upload.value.statusCode)
    // snippet.end
}

func sendForm(_ api: SessionManager) async throws {
    // snippet.forms-with-files
    var form = MultipartFormData()
    form.append("Ada", name: "user")
    try form.append(file: "/tmp/portrait.png", name: "portrait")
    let upload = api.upload("photos", form: form)
    // snippet.end
    print(try await upload.value.statusCode)
}

func askFirst(_ api: SessionManager, url: URL) async throws {
    // snippet.large-bodies-that-may-be-refused
    var request = Request(method: .put, url: url, body: .file("disk.iso"))
    request.options = api.configuration.transfer.with { $0.expectContinueTimeout = .seconds(1) }
    let upload = api.upload(request)
    // snippet.end
    print(try await upload.value.statusCode)
}
