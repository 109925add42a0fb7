// SPDX-License-Identifier: MIT

public import ANHTTP

/// Where a download is written, and what may be done for that.
///
/// The file is written beside its final place, or in a folder for temporary files, and gets its name in one step when it is
/// complete. A response with a status outside of 200 to 299 is never written.
public struct DownloadDestination: Sendable {
    let target: Target
    /// Whether a file that is there is replaced; otherwise the download fails with
    /// ``SessionError/FileProblem/Reason/exists``, at once where that can be seen. True by default.
    public var isReplacing = true
    /// Whether folders that are missing are made; false by default.
    public var makesFolders = false

    enum Target: Sendable {
        case path(String)
        case choice(folder: String, @Sendable (DownloadedFile, ResponseHead) async throws -> String)
    }

    /// A path. A symbolic link stays, and what it leads to is replaced; a device or a pipe is written to as it is.
    public static func file(
        _ path: String, isReplacing: Bool = true, makesFolders: Bool = false
    ) -> DownloadDestination {
        DownloadDestination(target: .path(path), isReplacing: isReplacing, makesFolders: makesFolders)
    }

    /// A path that a function chooses when the file is complete, from what was written and the response's head.
    ///
    /// What the function throws ends the download, and nothing is left.
    ///
    /// - Parameters:
    ///   - folder: Where the file is written meanwhile; nil means `TMPDIR`, or `/tmp`. A file that is then moved to another
    ///     file system is copied there, and appears in one step all the same.
    ///   - isReplacing: See ``isReplacing``.
    ///   - makesFolders: See ``makesFolders``.
    ///   - choose: Returns the path.
    public static func chosen(
        temporaryFolder folder: String? = nil, isReplacing: Bool = true, makesFolders: Bool = false,
        by choose: @escaping @Sendable (_ file: DownloadedFile, _ head: ResponseHead) async throws -> String
    ) -> DownloadDestination {
        DownloadDestination(
            target: .choice(folder: folder ?? ProcessFolders.temporary, choose), isReplacing: isReplacing,
            makesFolders: makesFolders)
    }

    private init(target: Target, isReplacing: Bool, makesFolders: Bool) {
        self.target = target
        self.isReplacing = isReplacing
        self.makesFolders = makesFolders
    }
}
