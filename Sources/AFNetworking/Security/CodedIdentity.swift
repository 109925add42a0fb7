// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A client identity encoded as text, to be stored as the password of a `URLCredential`.
struct CodedIdentity: Codable {
    private let certificates: Source?
    private let key: Source?
    private let bundle: Source?
    private let passphrase: String?

    private enum Source: Codable {
        case file(String)
        case data(Data)

        init(_ source: FileOrData) {
            switch source {
            case .file(let path): self = .file(path)
            case .data(let bytes): self = .data(bytes)
            }
        }

        var value: FileOrData {
            switch self {
            case .file(let path): .file(path)
            case .data(let bytes): .data(bytes)
            }
        }
    }

    init(_ identity: ClientIdentity) {
        passphrase = identity.passphrase
        switch identity.content {
        case .pem(let certificates, let key):
            self.certificates = Source(certificates)
            self.key = Source(key)
            bundle = nil
        case .pkcs12(let bundle):
            certificates = nil
            key = nil
            self.bundle = Source(bundle)
        }
    }

    /// Decodes an identity; `nil` if the text is not an encoded identity.
    init?(text: String) {
        guard let coded = try? JSONDecoder().decode(CodedIdentity.self, from: Data(text.utf8)) else { return nil }
        self = coded
    }

    /// The encoded identity.
    var text: String { (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "" }

    /// The decoded identity.
    var identity: ClientIdentity? {
        if let bundle { return .pkcs12(bundle.value, passphrase: passphrase ?? "") }
        return certificates.map { .pem(certificates: $0.value, key: key?.value, passphrase: passphrase) }
    }
}
