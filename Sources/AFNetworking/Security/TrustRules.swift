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
}
