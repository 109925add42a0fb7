// SPDX-License-Identifier: MIT

// Downloads many files, eight at a time, shows their common progress, and continues after an interruption.

import AsyncNetworking
import FoundationEssentials

let urls = CommandLine.arguments.dropFirst().compactMap { URL(string: $0) }
let api = SessionManager {
    $0.retryPolicy = RetryPolicy(limit: 5)
    // Both limits: over HTTP/1.1, a transfer needs a connection, and a host gets six of them by default.
    $0.maximumConcurrentTasks = 8
    $0.connectionLimits.maximumConnectionsPerHost = 8
}

var downloads = try api.restoredDownloads(in: "mirror")
let restored = Set(downloads.compactMap { $0.request?.url })
for url in urls where !restored.contains(url) {
    guard let name = url.suggestedFilename else { continue }
    let path = "mirror/\(name)"
    // Complete since an earlier run.
    guard !FileManager.default.fileExists(atPath: path) else { continue }
    let file = DownloadDestination.file(path, createsIntermediateDirectories: true)
    downloads.append(api.makeDownloadTask(for: Request(url: url), to: file, options: .durable))
}

let group = SessionTaskGroup(downloads)
await api.requestSizes(of: group)
group.resume()
for await progress in group.progress {
    print("\(progress.completedBytes) of \(progress.totalBytes.map(String.init) ?? "?") bytes")
}
for download in downloads {
    do {
        print("\(try await download.value.path): complete")
    } catch {
        print(error)
    }
}
