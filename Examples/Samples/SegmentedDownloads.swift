// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingXML
import Foundation

// The samples of the articles "Segmented downloads" and "Speed limits".

func downloadInSegments(_ api: SessionManager) async throws {
    // snippet.overview
    let options = DownloadOptions.durable.with { $0.segments = .automatic }
    let file = try await api.download("images/disk.iso", to: "disk.iso", options: options).value
    for change in file.response.metrics.segmentHistory {
        print(change.time, "\(change.count) segments", change.bytesPerSecond ?? 0)
    }
    // snippet.end
}

func downloadInEightSegments() async throws {
    // snippet.number
    let api = SessionManager { $0.connectionLimits.maximumConnectionsPerHost = 8 }
    let options = DownloadOptions().with { $0.segments = 8 }
    // snippet.end
    _ = try await api.download("images/disk.iso", to: "disk.iso", options: options).value
}

func downloadFromMirrors(_ api: SessionManager, _ digest: ContentDigest, _ mirrors: [URL]) async throws {
    // snippet.mirrors
    let options = DownloadOptions.durable.with {
        $0.segments = .automatic
        $0.mirrors = mirrors
        $0.expectedDigest = digest
    }
    // snippet.end
    _ = try await api.download("images/disk.iso", to: "disk.iso", options: options).value
}

func downloadVerifiedPieces(_ api: SessionManager, _ url: URL, _ mirrors: [URL], _ values: [Data]) async throws {
    // snippet.pieces
    let digests = try PieceDigests(.sha256, pieceLength: 1 << 20, totalBytes: 734_003_200, values: values)
    let options = DownloadOptions.durable.with {
        $0.segments = .automatic
        $0.mirrors = mirrors
        $0.pieceDigests = digests
    }
    // snippet.end
    _ = try await api.download(Request(url: url), to: "disk.iso", options: options).value
}

func downloadByMetalink(_ api: SessionManager) async throws {
    // snippet.metalink
    let content = try await api.get("images/disk.iso.meta4", as: .xmlParser).value
    for file in try Metalink(content).files {
        let options = file.downloadOptions.with { $0.isDurable = true }
        let path = "downloads/\(file.name)"
        _ = try await api.download(
            Request(url: file.urls[0]), to: .file(path, createsIntermediateDirectories: true), options: options
        ).value
    }
    // snippet.end
}

func limitSpeed() async throws {
    // snippet.speed-overview
    let all = SpeedLimit(bytesReceivedPerSecond: 2_000_000, bytesSentPerSecond: 500_000)
    let backups = SpeedLimit(bytesSentPerSecond: 100_000, host: "backup.example.com")
    let api = SessionManager { $0.speedLimits = [all, backups] }
    // snippet.end
    _ = api
}

func limitOneDownload(_ api: SessionManager, _ url: URL) async throws {
    // snippet.speed-request
    let own = SpeedLimit(bytesReceivedPerSecond: 200_000)
    var request = Request(url: url)
    request.changeOptions { $0.speedLimits.append(own) }
    let download = api.download(request, to: "disk.iso")
    // snippet.end
    // snippet.speed-change
    own.bytesReceivedPerSecond = nil
    // snippet.end
    _ = try await download.value
}

func pauseWhileReading(_ body: ResponseBody, _ quota: @escaping @Sendable (Int) async throws -> Void) -> ResponseBody {
    // snippet.speed-transformation
    let metered = body.transforming { chunk in
        try await quota(chunk.count)
        return chunk
    }
    // snippet.end
    return metered
}
