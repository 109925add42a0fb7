// SPDX-License-Identifier: MIT

import AsyncNetworking
import Foundation

// The samples of the article "Long-running programs".

func endInOrder(_ api: SessionManager) -> any DispatchSourceSignal {
    // snippet.termination
    signal(SIGTERM, SIG_IGN)
    let termination = DispatchSource.makeSignalSource(signal: SIGTERM)
    termination.setEventHandler { @Sendable in
        Task {
            await api.shutdown(draining: .seconds(20))
            exit(0)
        }
    }
    termination.activate()
    // snippet.end
    return termination
}

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
    let group = TransferGroup(downloads)
    await api.requestSizes(of: group)
    group.resume()
    for await progress in group.progress { print(progress.fraction ?? 0) }
    // snippet.end
}

// snippet.logs
struct FailureLog: EventMonitor {
    let lines: AsyncStream<String>.Continuation

    func receive(_ event: RequestEvent, of task: AnyTransferTask) {
        switch event {
        case .retrying, .ended: lines.yield("\(task) \(event)")
        default: break
        }
    }
}
// snippet.end
