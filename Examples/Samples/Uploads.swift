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

func uploadInScope(_ api: SessionManager, form: MultipartFormData) async throws {
    // snippet.scoped
    let request = try api.request(.post, "photos", body: .form(form))
    let response = try await api.withUpload(request) { upload in
        for await progress in upload.progress { print(progress.fraction ?? 0) }
        return try await upload.value
    }
    // snippet.end
    print(response.statusCode)
}

func uploadWithDigest(_ api: SessionManager) async throws {
    // snippet.digests
    let digest = try ContentDigest(ofFile: "disk.iso")
    _ = try await api.put("images/disk.iso", body: .file("disk.iso"), headers: [.contentDigest: digest.fieldValue])
    // snippet.end
}

func sendForm(_ api: SessionManager) async throws {
    // snippet.forms-with-files
    var form = MultipartFormData()
    form.append("Ada", name: "user")
    try form.append(file: "/tmp/portrait.png", name: "portrait")
    let upload = api.upload("photos", body: .form(form))
    // snippet.end
    print(try await upload.value.statusCode)
}

func askFirst(_ api: SessionManager, url: URL) async throws {
    // snippet.large-bodies-that-may-be-refused
    var request = Request(method: .put, url: url, body: .file("disk.iso"))
    request.changeOptions { $0.expectContinueTimeout = .seconds(1) }
    let upload = api.upload(request)
    // snippet.end
    print(try await upload.value.statusCode)
}

func writeEvents(_ api: SessionManager, events: AsyncStream<String>) async throws {
    // snippet.written-bodies
    try await api.post(
        "events",
        body: .writer { writer in
            for await event in events { try await writer.write(event + "\n") }
        })
    // snippet.end
}

func encryptBody(of request: inout Request, _ encrypt: @escaping @Sendable (Data) -> Data) {
    // snippet.bodies-in-interceptors
    let plain = request.body
    request.body = .writer { output in
        try await plain.write(to: RequestBodyWriter { chunk in try await output.write(encrypt(chunk)) })
    }
    // snippet.end
}
