// SPDX-License-Identifier: MIT

// Prints the public key pins of a server's certificates, or requests a page with pinned keys:
//
//     swift run PinACertificate https://example.com/
//     swift run PinACertificate https://example.com/ sha256/…= sha256/…=

import AsyncNetworking
import FoundationEssentials
import Glibc

let arguments = ProcessInfo.processInfo.arguments.dropFirst()
guard let text = arguments.first, let url = URL(string: text) else {
    print("usage: PinACertificate URL [PIN…]")
    exit(2)
}

do {
    var policy = SecurityPolicy()
    if arguments.count > 1 {
        let pins = try arguments.dropFirst().map { try PublicKeyPin($0) }
        policy = .pinning([pins[0]], backups: Array(pins.dropFirst()))
    }
    policy.observer = { result in
        print(result.isRefused ? "Refused" : "Trusted", result.trust.host)
        for certificate in result.trust.chain.isEmpty ? result.trust.presented : result.trust.chain {
            let isMatch = certificate.publicKey == result.matchedPin
            print("  \(certificate.publicKey)  \(certificate.subject)\(isMatch ? "  ← pinned" : "")")
        }
    }
    try await withSession(configure: { $0.tls.policy = policy }) { session in
        print("Status", try await session.data(for: Request(url: url)).statusCode)
    }
} catch {
    print(error)
    exit(1)
}
