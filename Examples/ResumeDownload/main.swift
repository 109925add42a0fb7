// SPDX-License-Identifier: MIT

// Resumes a download whenever the connection is lost, and after this program was killed:
//
//     swift run ResumeDownload              from a server in this process, which closes every 300 kB
//     swift run ResumeDownload URL FILE     from another server; kill the program and run it again

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

/// Downloads a file, and resumes as long as each attempt receives more bytes.
func download(_ url: URL, to path: String) async throws {
    let api = SessionManager()
    var offset: Int64 = -1
    while true {
        let download = api.download(Request(url: url), to: .file(path), options: .durable)
        do {
            let file = try await download.value
            print("\(path) has \(file.size) bytes.")
            return
        } catch let error as SessionError {
            guard let data = error.resumeData, data.offset > offset else { throw error }
            offset = data.offset
            print("Interrupted: \(offset) of \(data.totalBytes.map(String.init) ?? "?") bytes received.")
        }
    }
}

do {
    let arguments = CommandLine.arguments.dropFirst()
    if arguments.count == 2, let url = URL(string: arguments[1]) {
        try await download(url, to: arguments[2])
    } else {
        try await StubServer.with { server in
            let file = ServedFile(StubServer.generatedBytes(1_000_000), interruption: .close(after: 300_000))
            server.route("/disk.iso") { file.script(for: $0) }
            let path = "/tmp/resume-download-\(UInt64.random(in: .min ... .max))"
            defer { try? FileManager.default.removeItem(atPath: path) }
            try await download(server.url("/disk.iso"), to: path)
        }
    }
} catch {
    print(error)
}
