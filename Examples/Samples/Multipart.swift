// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

func postForm<Lines: AsyncSequence & Sendable>(_ api: SessionManager, lines: Lines) async throws
where Lines.Element == Data {
    // snippet.overview
    var form = MultipartFormData()
    form.append("Ada", name: "user")
    try form.append(file: "/tmp/portrait.png", name: "portrait")
    try form.append(.stream(lines), name: "log", fileName: "today.log")
    let response = try await api.post("users", body: .form(form))
    // snippet.end
    print(response.statusCode)
}

func relate(_ page: Data, _ picture: Data) throws -> MultipartFormData {
    // snippet.format
    var message = try MultipartFormData(subtype: .related(type: "text/html"))
    try message.append(page, headers: [("Content-Type", "text/html")])
    try message.append(picture, headers: [("Content-Type", "image/png"), ("Content-ID", "<1@example.com>")])
    // snippet.end
    return message
}

func keep(_ form: MultipartFormData, for url: URL) async throws -> Request {
    // snippet.writing-a-form-to-a-file
    let (contentType, body) = try await form.write(to: "/tmp/form.body")
    // snippet.end
    return Request(method: .post, url: url, headers: [.contentType: contentType], body: body)
}
