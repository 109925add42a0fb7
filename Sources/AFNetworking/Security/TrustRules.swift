// SPDX-License-Identifier: MIT

import AsyncNetworking

/// The rules of an ``AFSecurityPolicy``.
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

    /// Reads the rules of a policy, including overrides in a subclass.
    init(_ policy: AFSecurityPolicy) {
        self.init(
            mode: policy.sslPinningMode, pins: policy.pinnedCertificates ?? [],
            allowsInvalid: policy.allowInvalidCertificates, validatesName: policy.validatesDomainName)
    }

    /// Returns the core policy with these rules.
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
}
