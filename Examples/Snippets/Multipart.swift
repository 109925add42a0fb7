// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

func postForm<Lines: AsyncSequence & Sendable>(_ api: SessionManager, lines: Lines) async throws
where Lines.Element == Data {
    var form = MultipartFormData()
    try form.append(file: "/tmp/portrait.png", name: "portrait")
    try form.append(.stream(lines), name: "log", fileName: "today.log")
    let request = try api.request(.post, "users", parameters: ["name": "Ada"], form: form)
    print(try await api.data(for: request).statusCode)
}

func relate(_ page: Data, _ picture: Data) throws -> MultipartFormData {
    var message = try MultipartFormData(subtype: .related(type: "text/html"))
    try message.append(page, headers: [("Content-Type", "text/html")])
    try message.append(picture, headers: [("Content-Type", "image/png"), ("Content-ID", "<1@example.com>")])
    return message
}

func throttle(_ form: inout MultipartFormData, _ body: RequestBody) throws -> RequestBody {
    form.throttle = .packets(of: 16_384, delay: .milliseconds(200))
    return try body.throttled(.rate(bytesPerSecond: 100_000))
}

func keep(_ form: MultipartFormData, for url: URL) async throws -> Request {
    let (contentType, body) = try await form.write(to: "/tmp/form.body")
    return Request(method: .post, url: url, headers: [.contentType: contentType], body: body)
}
