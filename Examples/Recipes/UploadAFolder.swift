// SPDX-License-Identifier: MIT

// Uploads the photos of a folder, four at a time, and moves each to the folder `sent`. What a kill interrupts goes on where it
// was, if the server supports resumable uploads. After SIGTERM the running uploads end, and no other begins.

import AsyncNetworking
import Foundation

guard CommandLine.arguments.count == 3, let base = URL(string: CommandLine.arguments[1]) else {
    print("usage: https://…/ FOLDER")
    exit(2)
}
let folder = URL(filePath: CommandLine.arguments[2], directoryHint: .isDirectory)
let sent = folder.appending(component: "sent", directoryHint: .isDirectory)
try FileManager.default.createDirectory(at: sent, withIntermediateDirectories: true)
let api = SessionManager { $0.retryPolicy = RetryPolicy(limit: 8) }

@Sendable func upload(_ photo: URL) async throws {
    let name = photo.lastPathComponent
    let request = Request(method: .put, url: base.appending(component: name), body: .file(photo.path))
    try await api.withUpload(request, options: .durable) { upload in
        for await progress in upload.progress { print("\(name): \(progress.fraction ?? 0)") }
        _ = try await upload.value
    }
    try FileManager.default.moveItem(at: photo, to: sent.appending(component: name))
}

let photos = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    .filter { ["jpg", "jpeg"].contains($0.pathExtension.lowercased()) }
let ending = Task { try await api.shutdownOnSignal(draining: .seconds(20)) }
await withTaskGroup(of: Void.self) { group in
    for (index, photo) in photos.enumerated() {
        if index >= 4 { await group.next() }
        group.addTask {
            do {
                try await upload(photo)
            } catch SessionError.invalidated {
                // The session was shut down: the next run uploads this photo.
            } catch {
                print("\(photo.lastPathComponent): \(error)")
            }
        }
    }
}
ending.cancel()
