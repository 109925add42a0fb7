// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension SecurityPolicy {
    /// The certificates that a chain may end at.
    package enum Anchors: Hashable, CaseIterable {
        /// The trusted certificate authorities.
        case trustRoots
        /// The pinned certificates only.
        case pinnedCertificates
        /// The server's certificates whose keys are pinned only; their validity dates are ignored.
        case pinnedKeys
    }

    /// The result of building a valid chain.
    package struct ChainResult {
        /// The reason why there is no valid chain; `nil` if there is one. Includes the host name if the policy
        /// validates it.
        package var failure: TransportError.TLSFailure?
        /// The public keys of the chain, beginning with the server's.
        package var keys: [PublicKeyPin]

        /// Creates a result, by default a success without keys.
        package init(failure: TransportError.TLSFailure? = nil, keys: [PublicKeyPin] = []) {
            self.failure = failure
            self.keys = keys
        }
    }

    /// A decision about a server.
    package struct Evaluation: Equatable {
        /// The check that failed; `nil` if all passed.
        package var failure: TransportError.TLSFailure?
        /// Whether the server is refused because of ``failure``.
        package var isRefused = false
        /// The pin that matched a key of the chain; `nil` if no key matched.
        package var matchedPin: PublicKeyPin?

        /// Creates a decision, by default one without a failure.
        package init(
            failure: TransportError.TLSFailure? = nil, isRefused: Bool = false, matchedPin: PublicKeyPin? = nil
        ) {
            self.failure = failure
            self.isRefused = isRefused
            self.matchedPin = matchedPin
        }
    }

    /// Returns the decision about a server: the rules of the policy, then its evaluator, then ``isAudited``.
    ///
    /// - Parameters:
    ///   - host: The requested host; `nil` if no host name is to be validated.
    ///   - expectedKeys: All pinned keys, including those of the pinned certificates.
    ///   - now: The time to compare with the expiry of the pins.
    ///   - verify: Builds a valid chain that ends at the given anchors, or returns the reason for its failure. It may
    ///     be called more than once with the same anchors.
    ///   - trust: Returns the server's certificates for the evaluator, given the failure found by the rules.
    package func evaluate(
        host: String?, expectedKeys: [PublicKeyPin], at now: Date, verify: (Anchors) -> ChainResult,
        trust: (TransportError.TLSFailure?) -> ServerTrust
    ) -> Evaluation {
        var evaluation = applyRules(host: host, expectedKeys: expectedKeys, at: now, verify: verify)
        if let evaluator {
            switch evaluator(trust(evaluation.failure)) {
            case .followPolicy: break
            case .accept: evaluation.failure = nil
            case .refuse(let reason): evaluation.failure = .rejected(reason)
            }
        }
        evaluation.isRefused = evaluation.failure != nil && mustRefuse(verify)
        return evaluation
    }

    /// Returns a decision about a server together with its certificates.
    package func result(_ evaluation: Evaluation, _ trust: ServerTrust) -> TrustResult {
        let pin = evaluation.matchedPin
        return TrustResult(
            trust: trust, isRefused: evaluation.isRefused, matchedPin: pin,
            usesBackupPin: pin.map { backupPins.contains($0) && !pins.contains($0) } ?? false)
    }

    /// Returns whether a failure refuses the server: always, or if audited only if the server is not trusted
    /// without a policy either.
    package func mustRefuse(_ verify: (Anchors) -> ChainResult) -> Bool {
        !isAudited || verify(.trustRoots).failure != nil
    }

    private func applyRules(
        host: String?, expectedKeys: [PublicKeyPin], at now: Date, verify: (Anchors) -> ChainResult
    ) -> Evaluation {
        if let pinExpiry, pinExpiry <= now { return Evaluation(failure: verify(.trustRoots).failure) }
        switch pinningMode {
        case .none:
            guard allowsInvalidCertificates else { return Evaluation(failure: verify(.trustRoots).failure) }
            return Evaluation(failure: validatesDomainName && host != nil ? .invalidWithoutPins : nil)
        case .publicKey:
            return comparePublicKeys(expectedKeys, verify)
        case .certificate:
            return comparePinnedCertificates(verify)
        }
    }

    private func comparePublicKeys(_ expected: [PublicKeyPin], _ verify: (Anchors) -> ChainResult) -> Evaluation {
        guard !expected.isEmpty else { return Evaluation(failure: .noPins) }
        let finding = verify(allowsInvalidCertificates ? .pinnedKeys : .trustRoots)
        if let failure = finding.failure {
            return Evaluation(failure: allowsInvalidCertificates ? failure.ofPins(expected) : failure)
        }
        guard let match = finding.keys.first(where: expected.contains) else {
            return Evaluation(failure: .pinMismatch(expected: expected))
        }
        return Evaluation(matchedPin: match)
    }

    private func comparePinnedCertificates(_ verify: (Anchors) -> ChainResult) -> Evaluation {
        guard !pinnedCertificates.isEmpty else { return Evaluation(failure: .noPins) }
        if !allowsInvalidCertificates, let failure = verify(.trustRoots).failure { return Evaluation(failure: failure) }
        return Evaluation(failure: verify(.pinnedCertificates).failure?.ofPins([]))
    }
}

extension TransportError.TLSFailure {
    /// Returns the failure of a chain that was to end at pins: an unknown authority means that nothing pinned was
    /// found.
    fileprivate func ofPins(_ expected: [PublicKeyPin]) -> TransportError.TLSFailure {
        switch self {
        case .unknownAuthority, .selfSigned: expected.isEmpty ? .certificateNotPinned : .pinMismatch(expected: expected)
        default: self
        }
    }
}
