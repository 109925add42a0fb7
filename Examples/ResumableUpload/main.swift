// SPDX-License-Identifier: MIT

// Uploads a file to a tus server, or one with resumable uploads for HTTP, and goes on after each lost connection, also
// after this program was killed:
//
//     swift run ResumableUpload              to a server in this process, which resets connections after a megabyte
//     swift run ResumableUpload FILE URL     to another server; kill the program and run it again

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

func upload(_ path: String, to url: URL) async throws {
    let api = SessionManager()
    let upload = api.upload(url.absoluteString, body: .file(path), options: .durable)
    for await event in upload.events {
        switch event {
        case .exchange(_, .started(let request)): print(request.method.rawValue, request.url.path())
        case .retrying(let attempt): print("Interrupted: \(attempt.outcome)")
        case .uploadProgress(let progress): print(progress.fraction.map { "\(Int($0 * 100))%" } ?? "?")
        default: break
        }
    }
    let response = try await upload.value
    print("The server answered \(response.statusCode).")
}

/// A tus server that has one upload, and receives a megabyte of each request.
func serve(on server: StubServer) {
    let size: Int64 = 3_000_000
    server.route(
        "/files", method: "OPTIONS", .status(204, headers: ["Tus-Resumable": "1.0.0", "Tus-Extension": "creation"]))
    server.route("/files", method: "POST", .status(201, headers: ["Location": "/files/1"]))
    let offsets = [1_000_000, 2_000_000].map { Script.status(200, headers: ["Upload-Offset": "\($0)"]) }
    server.route("/files/1", method: "HEAD", offsets[0], offsets[1])
    let cut = Script([.readBody(upTo: 1_000_000), .end(.reset)], readsBodyFirst: false)
    server.route("/files/1", method: "PATCH", cut, cut, .status(204, headers: ["Upload-Offset": "\(size)"]))
}

do {
    let arguments = CommandLine.arguments.dropFirst()
    if arguments.count == 2, let url = URL(string: arguments[2]) {
        try await upload(arguments[1], to: url)
    } else {
        try await StubServer.with { server in
            serve(on: server)
            let path = "/tmp/resumable-upload-\(UInt64.random(in: .min ... .max))"
            try StubServer.generatedBytes(3_000_000).write(to: URL(filePath: path))
            defer { try? FileManager.default.removeItem(atPath: path) }
            try await upload(path, to: server.url("/files"))
        }
    }
} catch {
    print(error)
}
