// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// The securities of an engine's connections, each made once, by the task that first needs it: it may read files, and the
/// loop must not wait for those.
final class SecurityCache: Sendable {
    private let state = Lock(State())

    private struct State {
        /// By the options of a request and its host, which is quick.
        var byOptions: [Key: (options: SharedTransferOptions, security: ConnectionSecurity)] = [:]
        /// By what they were made of: two sessions with equal options are one here.
        var bySettings: [ConnectionSecurity.Settings: ConnectionSecurity] = [:]
    }

    private struct Key: Hashable {
        let options: ObjectIdentifier
        /// `nil` for the security of any host.
        let host: HostName?

        init(_ options: SharedTransferOptions, host: HostName) {
            self.options = ObjectIdentifier(options)
            self.host = host
        }

        init(plain options: SharedTransferOptions) {
            self.options = ObjectIdentifier(options)
            host = nil
        }
    }

    /// Returns what verifies the server of an exchange over TLS; `nil` if libcurl does it, on another library than OpenSSL.
    ///
    /// It may be older than its files if its options ask for no more than a valid chain and the right name: whether it is
    /// ``ConnectionSecurity/isCurrent`` costs a system call, and is asked for when a connection is made.
    func security(_ options: SharedTransferOptions, for url: URL) throws(TransportError) -> ConnectionSecurity? {
        guard !options.hasSecurity else { return try current(options, for: url) }
        if let known = state.withLock({ $0.byOptions[Key(plain: options)]?.security }) { return known }
        return try plain(options, for: url)
    }

    /// Returns what verifies the server of a new connection.
    func current(_ options: SharedTransferOptions, for url: URL) throws(TransportError) -> ConnectionSecurity? {
        guard options.hasSecurity else { return try plain(options, for: url) }
        do throws(SecurityFailure) {
            return try special(options, for: url)
        } catch {
            throw error.transportError(url)
        }
    }

    /// Returns what verifies a server by the options without their policies and identities.
    func plain(_ options: SharedTransferOptions, for url: URL) throws(TransportError) -> ConnectionSecurity? {
        do throws(SecurityFailure) {
            guard CurlLibrary.usesOpenSSL else {
                if case .systemAnd = options.value.tls.trustRoots { throw .openSSLNeeded }
                return nil
            }
            return try find(Key(plain: options), options) { ConnectionSecurity.Settings(plain: options.value.tls) }
        } catch {
            throw error.transportError(url)
        }
    }

    private func special(_ options: SharedTransferOptions, for url: URL) throws(SecurityFailure) -> ConnectionSecurity {
        guard CurlLibrary.usesOpenSSL else { throw .openSSLNeeded }
        let tls = options.value.tls
        let host = HostName(url)
        do throws(SecurityPolicy.ConfigurationError) {
            for pattern in tls.hostPolicies.keys { try pattern.check() }
            for pattern in tls.hostIdentities.keys { try pattern.check() }
        } catch {
            throw SecurityFailure(failure: .badSecurityPolicy(error))
        }
        // libcurl would find a host by a name that no pattern was compared with.
        guard !host.isInternational || tls.hostPolicies.isEmpty && tls.hostIdentities.isEmpty else {
            throw SecurityFailure(failure: .badSecurityPolicy(.hostNotASCII(host.text)))
        }
        let security = try find(Key(options, host: host), options) {
            ConnectionSecurity.Settings(tls, host: host)
        }
        try security.identity?.check(at: security.now)
        return security
    }

    private func find(
        _ key: Key, _ options: SharedTransferOptions, settings: () -> ConnectionSecurity.Settings
    ) throws(SecurityFailure) -> ConnectionSecurity {
        if let known = state.withLock({ $0.byOptions[key]?.security }), known.isCurrent { return known }
        let settings = settings()
        var security = state.withLock { $0.bySettings[settings] }
        if security?.isCurrent != true { security = nil }
        // Made without the lock. Two tasks that make the same at the same time keep the one that comes first.
        let made = if let security { security } else { try ConnectionSecurity(settings) }
        return state.withLock { state in
            if state.byOptions.count >= Self.maximumCount { state.byOptions.removeAll() }
            if state.bySettings.count >= Self.maximumCount { state.bySettings.removeAll() }
            let kept: ConnectionSecurity
            if let other = state.bySettings[settings], other !== security, other.isCurrent {
                kept = other
            } else {
                kept = made
            }
            state.bySettings[settings] = kept
            state.byOptions[key] = (options, kept)
            return kept
        }
    }

    private static let maximumCount = 256
}

extension SecurityFailure {
    /// A libcurl on another TLS library cannot be told what to verify.
    fileprivate static let openSSLNeeded = SecurityFailure(failure: nil)

    /// The error for a request to this URL, of which nothing was sent.
    func transportError(_ url: URL) -> TransportError {
        guard let failure else { return .unsupported(.openSSL) }
        var facts = FailureContext()
        facts.url = url.redactedDescription
        facts.host = url.host()
        return .tls(failure, facts)
    }
}
