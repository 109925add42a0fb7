// SPDX-License-Identifier: MIT

// Sends a file and prints its progress:
//
//     swift run UploadWithProgress              20 MB to a server in this process, which reads slowly
//     swift run UploadWithProgress FILE URL     to another server, with PUT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

func upload(_ body: RequestBody, to url: URL) async throws {
    let api = SessionManager()
    let upload = api.upload(url.absoluteString, body: body, method: .put)
    for await progress in upload.progress {
        print(progress.fraction.map { "\(Int($0 * 100))%" } ?? "?", progress.completedBytes, "bytes sent")
    }
    let response = try await upload.value
    print("The server answered \(response.statusCode).")
}

do {
    let arguments = CommandLine.arguments.dropFirst()
    if arguments.count == 2, let url = URL(string: arguments[2]) {
        try await upload(.file(arguments[1]), to: url)
    } else {
        try await StubServer.with { server in
            var reading: [Script.Action] = (1...10).flatMap { step -> [Script.Action] in
                [.readBody(upTo: Int64(step) * 2_000_000), .delay(.milliseconds(100))]
            }
            reading += [.readBody(), .reply(Reply(status: 201))]
            server.route("/disk.iso", Script(reading, readsBodyFirst: false))
            try await upload(.bytes(StubServer.generatedBytes(20_000_000)), to: server.url("/disk.iso"))
        }
    }
} catch {
    print(error)
}
