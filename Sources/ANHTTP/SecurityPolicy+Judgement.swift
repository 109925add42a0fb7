// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension SecurityPolicy {
    /// What a chain may end at.
    package enum Anchors: Hashable, CaseIterable {
        /// The trusted authorities.
        case trustRoots
        /// The pinned certificates, and nothing else.
        case pinnedCertificates
        /// The server's certificates whose keys are pinned, and nothing else; dates do not count.
        case pinnedKeys
    }

    /// What became of an attempt to build a valid chain.
    package struct ChainFinding {
        /// Why there is none; nil where there is one. It covers the name where the policy validates it.
        package var failure: TransportError.TLSFailure?
        /// The keys of the chain, from the server's upwards.
        package var keys: [PublicKeyPin]

        /// Creates a finding.
        package init(failure: TransportError.TLSFailure? = nil, keys: [PublicKeyPin] = []) {
            self.failure = failure
            self.keys = keys
        }
    }

    /// What is decided.
    package struct Judgement: Equatable {
        /// What failed; nil when nothing did.
        package var failure: TransportError.TLSFailure?
        /// Whether the server is refused for it.
        package var isRefused = false
        /// The pin that the chain matched.
        package var matchedPin: PublicKeyPin?

        /// Creates a judgement; by default one without a failure.
        package init(
            failure: TransportError.TLSFailure? = nil, isRefused: Bool = false, matchedPin: PublicKeyPin? = nil
        ) {
            self.failure = failure
            self.isRefused = isRefused
            self.matchedPin = matchedPin
        }
    }

    /// Decides on a server.
    ///
    /// - Parameters:
    ///   - host: Whose name was asked for; nil where there is none to be validated.
    ///   - expectedKeys: All pinned keys, those of the pinned certificates among them.
    ///   - now: The time that counts for the pins' expiry.
    ///   - verify: Builds a valid chain, or says why there is none. It may be asked more than once for the same.
    ///   - trust: What the server showed, for the evaluator, with the failure that the rules found.
    package func judge(
        host: String?, expectedKeys: [PublicKeyPin], at now: Date, verify: (Anchors) -> ChainFinding,
        trust: (TransportError.TLSFailure?) -> ServerTrust
    ) -> Judgement {
        var judgement = applyRules(host: host, expectedKeys: expectedKeys, at: now, verify: verify)
        if let evaluator {
            switch evaluator.evaluate(trust(judgement.failure)) {
            case .followRules: break
            case .accept: judgement.failure = nil
            case .refuse(let reason): judgement.failure = .rejected(reason)
            }
        }
        judgement.isRefused = judgement.failure != nil && mustRefuse(verify)
        return judgement
    }

    /// Whether a failure refuses the server: an audited one does where the server would not be trusted without a policy.
    package func mustRefuse(_ verify: (Anchors) -> ChainFinding) -> Bool {
        switch enforcement {
        case .enforced: true
        case .audited: verify(.trustRoots).failure != nil
        }
    }

    private func applyRules(
        host: String?, expectedKeys: [PublicKeyPin], at now: Date, verify: (Anchors) -> ChainFinding
    ) -> Judgement {
        if let pinExpiry, pinExpiry <= now { return Judgement(failure: verify(.trustRoots).failure) }
        switch pinningMode {
        case .none:
            guard allowsInvalidCertificates else { return Judgement(failure: verify(.trustRoots).failure) }
            return Judgement(failure: validatesDomainName && host != nil ? .invalidWithoutPins : nil)
        case .publicKey:
            return comparePublicKeys(expectedKeys, verify)
        case .certificate:
            return comparePinnedCertificates(verify)
        }
    }

    private func comparePublicKeys(_ expected: [PublicKeyPin], _ verify: (Anchors) -> ChainFinding) -> Judgement {
        guard !expected.isEmpty else { return Judgement(failure: .noPins) }
        let finding = verify(allowsInvalidCertificates ? .pinnedKeys : .trustRoots)
        if let failure = finding.failure {
            return Judgement(failure: allowsInvalidCertificates ? failure.ofPins(expected) : failure)
        }
        guard let match = finding.keys.first(where: expected.contains) else {
            return Judgement(failure: .pinMismatch(expected: expected))
        }
        return Judgement(matchedPin: match)
    }

    private func comparePinnedCertificates(_ verify: (Anchors) -> ChainFinding) -> Judgement {
        guard !pinnedCertificates.isEmpty else { return Judgement(failure: .noPins) }
        if !allowsInvalidCertificates, let failure = verify(.trustRoots).failure { return Judgement(failure: failure) }
        return Judgement(failure: verify(.pinnedCertificates).failure?.ofPins([]))
    }
}

extension TransportError.TLSFailure {
    /// The failure of a chain that was to end at pins: that it does not is not a matter of authorities.
    fileprivate func ofPins(_ expected: [PublicKeyPin]) -> TransportError.TLSFailure {
        switch self {
        case .unknownAuthority, .selfSigned: expected.isEmpty ? .certificateNotPinned : .pinMismatch(expected: expected)
        default: self
        }
    }
}
