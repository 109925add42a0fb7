// SPDX-License-Identifier: MIT

import AsyncNetworking

/// What an ``AFSecurityPolicy`` asks of servers.
struct TrustRules: Sendable {
    let mode: AFSSLPinningMode
    let pins: Set<Data>
    let allowsInvalid: Bool
    let validatesName: Bool

    init(mode: AFSSLPinningMode, pins: Set<Data>, allowsInvalid: Bool, validatesName: Bool) {
        self.mode = mode
        self.pins = pins
        self.allowsInvalid = allowsInvalid
        self.validatesName = validatesName
    }

    /// The rules of a policy, as a subclass may have them.
    init(_ policy: AFSecurityPolicy) {
        self.init(
            mode: policy.sslPinningMode, pins: policy.pinnedCertificates ?? [],
            allowsInvalid: policy.allowInvalidCertificates, validatesName: policy.validatesDomainName)
    }

    /// The core's policy with these rules.
    func policy(evaluator: SecurityPolicy.Evaluator?) -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.pinningMode =
            switch mode {
            case .none: .none
            case .publicKey: .publicKey
            case .certificate: .certificate
            }
        policy.pinnedCertificates = pins.sorted { $0.lexicographicallyPrecedes($1) }
        policy.allowsInvalidCertificates = allowsInvalid
        policy.validatesDomainName = validatesName
        policy.evaluator = evaluator
        return policy
    }

    /// Whether certificates that were judged by other rules are known to satisfy these.
    ///
    /// - Parameter isLax: Whether the other rules take chains that are not valid.
    func accept(_ trust: ServerTrust, _ domain: String?, judgedLaxly isLax: Bool) -> Bool {
        let isValid = trust.failure == nil && !isLax
        guard isValid || allowsInvalid else { return false }
        // The name was looked at with the chain, and no other one was.
        if validatesName, let domain { guard isValid, domain == trust.host else { return false } }
        let chain = trust.chain.isEmpty ? Array(trust.presented.prefix(1)) : trust.chain
        switch mode {
        case .none: return !allowsInvalid || !validatesName || domain == nil
        case .certificate: return isValid && chain.contains { pins.contains($0.der) }
        // The keys of pins are known where the certificates themselves are in the chain.
        case .publicKey: return chain.contains { pins.contains($0.der) }
        }
    }
}
