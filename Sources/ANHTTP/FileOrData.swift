// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Data such as certificates, keys or revocation lists, in a file or in memory.
public enum FileOrData: Hashable, Sendable {
    /// The path of a file, absolute or relative to the current directory of the process.
    ///
    /// Files of client identities and revocation lists are read when a request first needs them, and again after they
    /// change; if they cannot be read, requests fail with ``TransportError/TLSFailure/badClientIdentity(_:)`` or
    /// ``TransportError/TLSFailure/badSecurityPolicy(_:)``. `SecurityPolicy.certificates(in:)` reads the file once,
    /// when it is called, and throws an error if it cannot be read.
    case file(String)
    /// Bytes in memory, in one of the formats that a file may have for the same purpose, such as PEM or DER.
    case data(Data)

    /// The path, or the number of bytes: the bytes themselves may be secret.
    package var label: String {
        switch self {
        case .file(let path): path
        case .data(let bytes): "\(bytes.count) bytes"
        }
    }

    /// The path of the file; `nil` for data in memory.
    package var path: String? {
        if case .file(let path) = self { path } else { nil }
    }
}
