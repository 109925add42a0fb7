// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Data such as certificates, keys or revocation lists, in a file or in memory.
public enum FileOrData: Hashable, Sendable, CustomStringConvertible {
    /// The path of a file, which is read again after it changes.
    case file(String)
    /// Bytes in memory.
    case data(Data)

    /// The path, or the number of bytes: the bytes themselves may be secret.
    public var description: String {
        switch self {
        case .file(let path): path
        case .data(let bytes): "\(bytes.count) bytes"
        }
    }

    /// The path of the file; `nil` for data in memory.
    package var path: String? {
        if case .file(let path) = self { path } else { nil }
    }

    /// Returns the bytes, read from the file if there is one.
    package func read() throws(ReadError) -> Data {
        switch self {
        case .data(let bytes): return bytes
        case .file(let path):
            do {
                return try Data(contentsOf: URL(filePath: path))
            } catch {
                throw ReadError(path: path, reason: (error as? CocoaError).map(Self.words) ?? "\(error)")
            }
        }
    }

    private static func words(_ error: CocoaError) -> String {
        switch error.code {
        case .fileNoSuchFile, .fileReadNoSuchFile: "the file does not exist"
        case .fileReadNoPermission: "permission denied"
        default: "it cannot be read"
        }
    }

    /// The failure to read a file.
    package struct ReadError: Error {
        package let path: String
        package let reason: String
    }
}
