// SPDX-License-Identifier: MIT

extension SecurityPolicy.ConfigurationError: CustomStringConvertible {
    /// The error as a clause that can end a sentence.
    public var description: String {
        switch self {
        case .pin(let text): "“\(text)” is not a pin, which is sha256/ and 32 bytes in Base64"
        case .unreadable(let path, let reason): "\(path): \(reason)"
        case .noCertificate(let source): "\(source): it contains no certificate"
        case .malformedCertificate: "a pinned certificate cannot be parsed"
        case .revocationLists: "the certificate revocation lists cannot be read"
        case .hostPattern(let text): "“\(text)” is neither a host in ASCII (xn--…) nor *. followed by a name"
        case .hostNotASCII(let host): "settings by host require the ASCII form (xn--…) of “\(host)”"
        }
    }
}
