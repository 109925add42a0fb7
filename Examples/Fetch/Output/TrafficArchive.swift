// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

/// The recorded exchanges: an HTTP archive, a page, or both.
struct TrafficArchive {
    let recorder: HARRecorder
    private let path: String
    private let isTemporary: Bool
    private let page: String?

    /// Begins to record.
    ///
    /// - Parameters:
    ///   - har: The path of the archive; `nil` if only the page is wanted.
    ///   - page: The path of the page; `nil` for none.
    /// - Throws: `SessionError` for a file that cannot be created.
    init(har: String?, page: String?) throws {
        path = har ?? "\(page ?? "").\(UUID().uuidString).har"
        isTemporary = har == nil
        self.page = page
        recorder = try HARRecorder(path: path)
    }

    /// Writes what was recorded.
    ///
    /// - Throws: `SessionError` for the archive, or ``OutputError`` for the page.
    func close() async throws {
        try await recorder.close()
        guard let page else { return }
        let archive = URL(filePath: path)
        defer { if isTemporary { try? FileManager.default.removeItem(at: archive) } }
        let text = Data(try HAR(Data(contentsOf: archive)).html(title: page).utf8)
        // For the user only, like the archive.
        guard FileManager.default.createFile(atPath: page, contents: text, attributes: [.posixPermissions: 0o600])
        else {
            throw OutputError.system("\(page) cannot be created")
        }
    }
}
