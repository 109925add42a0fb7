// SPDX-License-Identifier: MIT

extension SecurityPolicy.ConfigurationError {
    /// Creates the error of a text that is not `sha256/` followed by 32 bytes in Base64.
    package static func pin(_ text: String) -> Self {
        Self(description: "“\(text)” is not a pin, which is sha256/ and 32 bytes in Base64")
    }
    /// Creates the error of a file or directory that cannot be read.
    package static func unreadable(path: String, reason: String) -> Self { Self(description: "\(path): \(reason)") }
    /// Creates the error of a source without certificates.
    package static func noCertificate(_ source: String) -> Self {
        Self(description: "\(source): it contains no certificate")
    }
    /// The error of a pinned certificate that cannot be parsed.
    package static let malformedCertificate = Self(description: "a pinned certificate cannot be parsed")
    /// The error of revocation lists that cannot be read or contain no usable list.
    package static let revocationLists = Self(description: "the certificate revocation lists cannot be read")
    /// Creates the error of a text that is not a valid ``HostPattern``.
    package static func hostPattern(_ text: String) -> Self {
        Self(description: "“\(text)” is neither a host in ASCII (xn--…) nor *. followed by a name")
    }
    /// Creates the error of a host name that is not ASCII although policies or identities are selected by host.
    package static func hostNotASCII(_ host: String) -> Self {
        Self(description: "settings by host require the ASCII form (xn--…) of “\(host)”")
    }
}
