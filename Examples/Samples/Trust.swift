// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Trust and pinning".

func trustCompany(_ companyAuthority: Data) -> SessionManager {
    // snippet.private-certificate-authorities
    let api = SessionManager {
        $0.tls.trustRoots = .systemAnd(companyAuthority)
    }
    // snippet.end
    return api
}

func pinKeys(_ current: String, _ next: String, _ endOfSupport: Date) throws -> SessionManager {
    // snippet.public-key-pinning
    let policy = SecurityPolicy.pinning(
        [try PublicKeyPin("sha256/" + current)], backups: [try PublicKeyPin("sha256/" + next)], until: endOfSupport)
    let api = SessionManager {
        $0.tls.policy = policy
    }
    // snippet.end
    return api
}

func pinCertificates() throws -> SecurityPolicy {
    // snippet.public-key-pinning-2
    let policy = SecurityPolicy.pinning(certificates: try SecurityPolicy.certificates(inDirectory: "/etc/pins"))
    // snippet.end
    return policy
}

func auditPolicy(_ policy: SecurityPolicy, log: @escaping @Sendable (String) -> Void) -> SecurityPolicy {
    // snippet.audit-mode
    var policy = policy
    policy.isAudited = true
    policy.observer = { result in
        if let failure = result.trust.failure { log("\(result.trust.host): \(failure)") }
        if result.usesBackupPin { log("\(result.trust.host) is at its backup key.") }
    }
    // snippet.end
    return policy
}

func evaluateByHand() -> SecurityPolicy {
    // snippet.audit-mode-2
    var policy = SecurityPolicy()
    policy.evaluator = { trust in
        guard trust.failure == nil, let leaf = trust.presented.first else { return .followPolicy }
        let isLongLived = leaf.notAfter.timeIntervalSince(leaf.notBefore) > 398 * 86_400
        return isLongLived ? .refuse("a certificate for more than 398 days") : .followPolicy
    }
    // snippet.end
    return policy
}

func evaluateCertificates(
    _ certificate: Data, _ intermediate: Data, _ companyAuthority: Data, _ signingTime: Date
) -> TrustResult {
    // snippet.verifying-certificates-without-a-connection
    var policy = SecurityPolicy()
    policy.trustRoots = .pem(companyAuthority)
    policy.verificationTime = signingTime
    let result = policy.evaluate([certificate, intermediate], for: "api.example.com")
    // snippet.end
    return result
}

func choosePolicies(_ policy: SecurityPolicy, _ internalPolicy: SecurityPolicy) -> SessionManager {
    // snippet.policies-by-host
    let api = SessionManager {
        $0.tls.hostPolicies["api.example.com"] = policy
        $0.tls.hostPolicies["*.internal.example"] = internalPolicy
    }
    // snippet.end
    return api
}

func showIdentity(_ passphrase: String) -> SessionManager {
    // snippet.client-certificates
    let api = SessionManager {
        $0.tls.identity = .pem(certificates: .file("/etc/client.pem"), key: .file("/etc/client.key"))
        $0.tls.hostIdentities["partner.example"] = .pkcs12(.file("/etc/partner.p12"), passphrase: passphrase)
    }
    // snippet.end
    return api
}

func limitTLS() -> SessionManager {
    // snippet.other-tls-settings
    let api = SessionManager {
        $0.tls.minimumVersion = .v1_3
        $0.tls.cipherSuites = "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
        $0.tls.curves = "X25519:P-256"
        $0.tls.keyLogPath = "/tmp/keys.log"
    }
    // snippet.end
    return api
}
