// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Long-running programs".

// snippet.termination
/// A service that is an actor; the same call works in top-level code and on the main actor.
actor Service {
    let api = SessionManager(baseURL: URL(string: "https://api.example.com/"))

    func run() async throws {
        async let ending = api.shutdownOnSignal(draining: .seconds(20))
        do {
            while true {
                do {
                    try await api.post("heartbeat")
                } catch SessionError.transport(let error) {
                    print("no heartbeat: \(error)")
                }
                try await Task.sleep(for: .seconds(1))
            }
        } catch SessionError.invalidated {
            print("ended by signal \(try await ending)")
        }
    }
}
// snippet.end

func goOnAfterARestart(_ api: SessionManager, _ files: [(url: URL, path: String, digest: ContentDigest)]) throws {
    // snippet.downloads
    var downloads = try api.restoredDownloads(in: "/var/lib/mirror")
    let restored = Set(downloads.compactMap { $0.request?.url })
    for file in files where !restored.contains(file.url) {
        let options = DownloadOptions.durable.with {
            $0.expectedDigest = file.digest
            $0.skipsVerifiedFile = true
        }
        downloads.append(api.makeDownloadTask(for: Request(url: file.url), to: .file(file.path), options: options))
    }
    // snippet.end
}

func showTotal(_ api: SessionManager, _ downloads: [DownloadTask], _ manifest: [URL: Int64]) async throws {
    // snippet.expected-sizes
    for download in downloads {
        download.expectedBytes = download.request.flatMap { manifest[$0.url] }
    }
    let group = SessionTaskGroup(downloads)
    await api.requestSizes(of: group)
    group.resume()
    for await progress in group.progress { print(progress.fraction ?? 0) }
    // snippet.end
}

// snippet.logs
struct FailureLog: EventMonitor {
    let lines: AsyncStream<String>.Continuation

    func receive(_ event: TaskEvent, of task: AnySessionTask) {
        switch event {
        case .retrying, .ended: lines.yield("\(task) \(event)")
        default: break
        }
    }
}
// snippet.end
