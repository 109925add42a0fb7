// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Certificates, keys or lists that a program keeps in a file or in memory.
public enum FileOrData: Hashable, Sendable, CustomStringConvertible {
    /// The file at this path. It is read again when it has changed.
    case file(String)
    /// These bytes.
    case data(Data)

    /// The path, or how many bytes there are: the bytes may be secret.
    public var description: String {
        switch self {
        case .file(let path): path
        case .data(let bytes): "\(bytes.count) bytes"
        }
    }

    /// The path of a file.
    package var path: String? {
        if case .file(let path) = self { path } else { nil }
    }

    /// The bytes.
    package func read() throws(ReadFailure) -> Data {
        switch self {
        case .data(let bytes): return bytes
        case .file(let path):
            do {
                return try Data(contentsOf: URL(filePath: path))
            } catch {
                throw ReadFailure(path: path, reason: (error as? CocoaError).map(Self.words) ?? "\(error)")
            }
        }
    }

    private static func words(_ error: CocoaError) -> String {
        switch error.code {
        case .fileNoSuchFile, .fileReadNoSuchFile: "there is no such file"
        case .fileReadNoPermission: "this user may not read it"
        default: "it cannot be read"
        }
    }

    /// A file that cannot be read.
    package struct ReadFailure: Error {
        package let path: String
        package let reason: String
    }
}
