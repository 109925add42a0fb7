// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Uploads".

func upload(_ api: SessionManager) async throws {
    // snippet.overview
    let upload = api.upload("images/disk.iso", from: .file("disk.iso"), method: .put)
    for await progress in upload.progress { print(progress.fraction ?? 0) }
    print(try await upload.value.statusCode)
    // snippet.end
}

func sendForm(_ api: SessionManager, url: URL) async throws {
    // snippet.forms-with-files
    var form = MultipartFormData()
    form.append("Ada", name: "user")
    try form.append(file: "/tmp/portrait.png", name: "portrait")
    let (contentType, body) = try form.makeBody()
    let request = Request(method: .post, url: url, headers: [.contentType: contentType], body: body)
    // snippet.end
    print(try await api.data(for: request).statusCode)
}

func askFirst(_ api: SessionManager, url: URL) async throws {
    // snippet.large-bodies-that-may-be-refused
    var request = Request(method: .put, url: url)
    request.options = api.configuration.transfer.with { $0.expectContinueTimeout = .seconds(1) }
    let upload = api.upload(request, from: .file("disk.iso"))
    // snippet.end
    print(try await upload.value.statusCode)
}
