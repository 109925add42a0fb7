// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

/// The examples with a server of their own succeed.
@Suite struct ExamplesTests {
    private static let directory = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

    @Test(arguments: [
        "CachedFeed", "ChangeFeed", "ChatStream", "DecodeErrors", "DownloadWithProgress", "FromAFNetworking",
        "MutualTLS", "PostForm", "RefreshAToken", "ResumeDownload", "RetryWithBackoff", "UploadMultipart",
        "UploadWithProgress",
    ])
    func `an example runs to its end`(name: String) async throws {
        let scratch = FileManager.default.temporaryDirectory.appending(path: "an-example-\(UUID())")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: scratch) }
        var command = Command(Self.directory.appending(path: name).path())
        command.directory = scratch.path()
        let outcome = try await command.run()
        #expect(outcome.status == 0, "\(outcome.text)")
    }
}
