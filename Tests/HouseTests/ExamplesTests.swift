// SPDX-License-Identifier: MIT

import Foundation
import Testing

/// The examples with a server of their own succeed.
@Suite struct ExamplesTests {
    private static let directory = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

    @Test(arguments: [
        "DecodeErrors", "DownloadWithProgress", "FromAFNetworking", "MutualTLS", "PostForm", "RefreshAToken",
        "ResumeDownload", "RetryWithBackoff", "UploadMultipart", "UploadWithProgress",
    ])
    func `an example runs to its end`(name: String) async throws {
        let scratch = FileManager.default.temporaryDirectory.appending(path: "an-example-\(UUID())")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: scratch) }
        let process = Process()
        process.executableURL = Self.directory.appending(path: name)
        process.currentDirectoryURL = scratch
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do {
                try process.run()
            } catch {
                continuation.resume(throwing: error)
            }
        }
        #expect(status == 0)
    }
}
