// SPDX-License-Identifier: MIT

import ANCurl
public import ANHTTP
public import FoundationEssentials

extension SecurityPolicy {
    /// Judges certificates without a connection, by the rules of this policy and with the verification of a handshake.
    ///
    /// The chain must end at the ``ANHTTP/SecurityPolicy/trustRoots``, those of the system if `nil`; it is judged at the
    /// ``ANHTTP/SecurityPolicy/verificationTime``, now if `nil`. The ``ANHTTP/SecurityPolicy/evaluator`` has the last word, the
    /// observer is not told, and a policy that requires a stapled OCSP response refuses all: no server can show one here.
    ///
    /// ```swift
    /// var policy = SecurityPolicy()
    /// policy.trustRoots = .pem(companyAuthority)
    /// let verdict = policy.verdict(on: [certificate, intermediate], for: "api.example.com")
    /// ```
    ///
    /// - Parameters:
    ///   - certificates: The certificates in DER, the server's own first, then those between it and an authority.
    ///   - host: The name or address that the server's certificate must be for; `nil` validates none.
    /// - Returns: The verdict; without certificates, or with one that cannot be read, one that refuses.
    public func verdict(on certificates: [Data], for host: String?) -> TrustVerdict {
        ChainJudge.verdict(on: certificates, for: host, by: self)
    }

    /// The certificates, in DER, of all files of a folder that ``certificates(inFolder:)`` would read; what cannot be read, and
    /// what is not a certificate, is left out.
    package static func readableCertificates(inFolder path: String) -> [Data] {
        let files = (try? certificateFiles(inFolder: path)) ?? []
        return files.flatMap { (try? certificates(in: .file($0))) ?? [] }.filter(ChainJudge.isCertificate)
    }
}
