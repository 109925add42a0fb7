// SPDX-License-Identifier: MIT

// Uploads a form with fields, data, a file and a sequence of unknown length, and prints the progress:
//
//     swift run UploadMultipart                a temporary file, to a server in this process
//     swift run UploadMultipart FILE URL       a file to another server

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

/// Lines that are generated while they are sent.
struct Countdown: AsyncSequence, Sendable {
    struct AsyncIterator: AsyncIteratorProtocol {
        var left = 10

        mutating func next() async -> Data? {
            guard left > 0 else { return nil }
            defer { left -= 1 }
            return Data("\(left)\n".utf8)
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }
}

func upload(_ file: String, to url: URL) async throws {
    let api = SessionManager { $0.speedLimits = [SpeedLimit(bytesSentPerSecond: 4_000_000)] }
    var form = MultipartFormData()
    form.append("Ada", name: "user")
    try form.append(Data(#"{"page": 1}"#.utf8), name: "meta", fileName: "meta.json")
    try form.append(file: file, name: "file")
    print("Without the sequence the form has \(form.length.map(String.init) ?? "?") bytes.")
    try form.append(.stream(Countdown(), isReplayable: true), name: "log", fileName: "countdown.log")

    let task = api.upload(url.absoluteString, body: .form(form))
    for await progress in task.progress { print("\(progress.completedBytes) bytes sent") }
    let response = try await task.value
    print("Status \(response.statusCode): \(String(decoding: response.value, as: UTF8.self))")
}

do {
    let arguments = CommandLine.arguments.dropFirst()
    if let file = arguments.first, let url = arguments.last.flatMap(URL.init(string:)), arguments.count == 2 {
        try await upload(file, to: url)
    } else {
        let file = FileManager.default.temporaryDirectory.appending(path: "upload-\(UUID()).bin").path
        try Data(repeating: 42, count: 2_000_000).write(to: URL(filePath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        try await StubServer.with { server in
            server.fallback { request in
                .text("\(request.bodyLength) bytes of \(request.headers["Content-Type"] ?? "no type")")
            }
            try await upload(file, to: server.url("/"))
        }
    }
} catch {
    print(error)
}
