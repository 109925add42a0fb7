// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension SecurityPolicy {
    /// The certificates, in DER, of a file or of bytes: any number in PEM, or one in DER.
    ///
    /// - Throws: ``Problem/unreadable(path:reason:)`` or ``Problem/noCertificate(_:)``.
    public static func certificates(in source: FileOrData) throws(Problem) -> [Data] {
        let certificates: [Data]
        do throws(FileOrData.ReadFailure) {
            certificates = PEM.certificates(in: try source.read())
        } catch {
            throw .unreadable(path: error.path, reason: error.reason)
        }
        guard !certificates.isEmpty else { throw .noCertificate(source.description) }
        return certificates
    }

    /// The certificates, in DER, of all files of a folder whose names end in `.cer`, `.crt`, `.der` or `.pem`, in the order
    /// of the names; folders within it are not searched.
    ///
    /// - Throws: ``Problem/unreadable(path:reason:)``, or ``Problem/noCertificate(_:)`` for a file without any and
    ///   for a folder without such files.
    public static func certificates(inFolder path: String) throws(Problem) -> [Data] {
        var certificates: [Data] = []
        for file in try certificateFiles(inFolder: path) { certificates += try Self.certificates(in: .file(file)) }
        guard !certificates.isEmpty else { throw .noCertificate(path) }
        return certificates
    }

    /// The paths of the files of a folder that are named as certificates are, in the order of their names.
    ///
    /// - Throws: ``Problem/unreadable(path:reason:)``.
    package static func certificateFiles(inFolder path: String) throws(Problem) -> [String] {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            throw .unreadable(path: path, reason: "it is no folder that this user may read")
        }
        return names.sorted().filter { [".cer", ".crt", ".der", ".pem"].contains(where: $0.hasSuffix) }
            .map { path + "/" + $0 }
    }
}

extension SecurityPolicy.Problem: CustomStringConvertible {
    /// What is wrong, as the end of a sentence.
    public var description: String {
        switch self {
        case .pin(let text): "“\(text)” is no pin, which is sha256/ and 32 bytes in Base64"
        case .unreadable(let path, let reason): "\(path): \(reason)"
        case .noCertificate(let source): "\(source): there is no certificate in it"
        case .malformedCertificate: "a pinned certificate cannot be read"
        case .revocationLists: "the lists of revoked certificates cannot be read"
        case .hostPattern(let text): "“\(text)” is neither a host in ASCII (xn--…) nor *. and a name"
        case .hostNotASCII(let host): "settings by host need the ASCII form (xn--…) of “\(host)”"
        }
    }
}
