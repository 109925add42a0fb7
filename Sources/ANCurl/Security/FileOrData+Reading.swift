// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials

extension FileOrData {
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
