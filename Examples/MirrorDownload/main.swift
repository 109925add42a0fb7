// SPDX-License-Identifier: MIT

// Downloads a file in segments from several servers, and verifies it:
//
//     swift run MirrorDownload                                   from three servers in this process, one of which lies
//     swift run MirrorDownload sha256:DIGEST FILE URL MIRROR...  from other servers

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

/// Downloads a file from a URL and its mirrors, and prints what was tried.
func download(_ url: URL, mirrors: [URL], digest: ContentDigest, to path: String) async throws {
    let api = SessionManager()
    let options = DownloadOptions.durable.with {
        $0.segments = .automatic
        $0.mirrors = mirrors
        $0.expectedDigest = digest
    }
    let task = api.download(Request(url: url), to: .file(path), options: options)
    for await progress in task.progress {
        print("\(progress.completedBytes) of \(progress.totalBytes.map(String.init) ?? "?") bytes")
    }
    let file = try await task.value
    print("\(path) has \(file.size) bytes.")
    for change in file.response.metrics.segmentHistory {
        let speed = change.bytesPerSecond.map { ", after \(Int($0 / 1_000)) kB/s" } ?? ""
        print("\(change.time): \(change.count) segments\(speed)")
    }
}

do {
    let arguments = CommandLine.arguments.dropFirst()
    let urls = arguments.dropFirst(2).compactMap(URL.init(string:))
    if let digest = arguments.first.flatMap(ContentDigest.init), let url = urls.first {
        try await download(url, mirrors: Array(urls.dropFirst()), digest: digest, to: Array(arguments)[1])
    } else {
        try await StubServer.with { server in
            let bytes = StubServer.generatedBytes(4_000_000)
            let pace = Script.Pace(bytes: 10_000, every: .milliseconds(5))
            let (right, wrong) = (ServedFile(bytes, pace: pace), ServedFile(Data(count: bytes.count), pace: pace))
            server.route("/disk.iso") { right.script(for: $0) }
            server.route("/mirror/disk.iso") { right.script(for: $0) }
            server.route("/liar/disk.iso") { wrong.script(for: $0) }
            let path = "/tmp/mirror-download-\(UInt64.random(in: .min ... .max))"
            defer { try? FileManager.default.removeItem(atPath: path) }
            let mirrors = [server.url("/mirror/disk.iso"), server.url("/liar/disk.iso")]
            let digest = try ContentDigest(of: bytes)
            try await download(server.url("/disk.iso"), mirrors: mirrors, digest: digest, to: path)
        }
    }
} catch {
    print(error)
}
