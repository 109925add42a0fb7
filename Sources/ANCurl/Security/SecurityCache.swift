// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import COpenSSL
import FoundationEssentials
import Synchronization

/// A cache of the TLS security settings of an engine's connections. Each is created once, by the task that first needs
/// it, because this may read files, for which the loop must not wait.
final class SecurityCache: Sendable {
    private let state = Lock(State())

    private struct State {
        /// The security settings by a request's options and its host, a fast lookup.
        var byOptions = RecentValues<Key, (options: SharedTransferOptions, security: ConnectionSecurity)>(size: 128)
        /// The security settings by their contents, so that two sessions with equal options share one value.
        var bySettings = RecentValues<ConnectionSecurity.Settings, ConnectionSecurity>(size: 128)
    }

    private struct Key: Hashable {
        let options: ObjectIdentifier
        /// The host; `nil` for settings that apply to any host.
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

    /// Returns the security settings for an exchange over TLS; `nil` if libcurl verifies the server because it uses a
    /// TLS library other than OpenSSL.
    ///
    /// If the options require only a valid chain and a matching name, the result may be older than its files: checking
    /// ``ConnectionSecurity/isCurrent`` costs a system call, and is done when a connection is made.
    func security(_ options: SharedTransferOptions, for url: URL) throws(TransportError) -> ConnectionSecurity? {
        guard !options.hasSecurity else { return try current(options, for: url) }
        if let known = state.withLock({ $0.byOptions[Key(plain: options)]?.security }) { return known }
        return try plain(options, for: url)
    }

    /// Returns the security settings for a new connection, reloaded if their files have changed.
    func current(_ options: SharedTransferOptions, for url: URL) throws(TransportError) -> ConnectionSecurity? {
        guard options.hasSecurity else { return try plain(options, for: url) }
        do throws(SecurityFailure) {
            return try special(options, for: url)
        } catch {
            throw error.transportError(url)
        }
    }

    /// Returns the security settings for the options without their policies and identities.
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
        // libcurl would resolve the host by a different form of its name, with which no pattern was compared.
        guard !host.isInternational || tls.hostPolicies.isEmpty && tls.hostIdentities.isEmpty else {
            throw SecurityFailure(failure: .badSecurityPolicy(.hostNotASCII(host.text)))
        }
        let security = try find(Key(options, host: host), options) {
            ConnectionSecurity.Settings(tls, host: host)
        }
        do throws(SecurityFailure) {
            try security.identity?.check(at: security.now)
        } catch {
            throw security.mismatch ?? error
        }
        return security
    }

    private func find(
        _ key: Key, _ options: SharedTransferOptions, settings: () -> ConnectionSecurity.Settings
    ) throws(SecurityFailure) -> ConnectionSecurity {
        if let known = state.withLock({ $0.byOptions[key]?.security }), known.isCurrent { return known }
        let settings = settings()
        let known = state.withLock { $0.bySettings[settings] }
        let security = known?.isCurrent == true ? known : nil
        // Created without holding the lock. If two tasks create the same settings concurrently, both use those stored
        // first.
        let made = if let security { security } else { try ConnectionSecurity(settings, replacing: known) }
        return state.withLock { state in
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
}

extension SecurityFailure {
    /// The failure for a libcurl with another TLS library, whose verification cannot be configured.
    fileprivate static let openSSLNeeded = SecurityFailure(failure: nil)

    /// Returns the error for a request to this URL, of which nothing was sent.
    func transportError(_ url: URL) -> TransportError {
        guard let failure else { return TransportError(.unsupported(.openSSL)) }
        return TransportError(.tls(failure), context: FailureContext(url))
    }
}

/// The TLS settings of a connection besides libcurl's own options, with their files read and checked in advance.
/// Immutable.
final class ConnectionSecurity: Sendable {
    /// The options from which the security settings are created.
    struct Settings: Hashable {
        var policy: SecurityPolicy
        var identity: ClientIdentity?
        var identityChooser: ClientIdentity.Chooser?
        var trustRoots: TrustRoots
        var keyLogPath: String?

        /// Creates the settings for a host.
        init(_ options: TLSOptions, host: HostName) {
            policy = options.policy(for: host)
            identity = options.identity(for: host)
            identityChooser = options.identityChooser
            trustRoots = policy.trustRoots ?? options.trustRoots
            keyLogPath = options.keyLogPath
        }

        /// Creates the settings without a policy or an identity, for any host.
        init(plain options: TLSOptions) {
            policy = SecurityPolicy()
            trustRoots = options.trustRoots
        }
    }

    let policy: SecurityPolicy
    let roots: TrustStore
    /// The pinned certificates; `nil` if they are not used as anchors.
    let pinned: TrustStore?
    /// All pinned keys, including those of pinned certificates.
    let pinnedKeys: [PublicKeyPin]
    let identity: LoadedIdentity?
    /// The failure because of which ``identity`` is the one that was loaded before; `nil` if it is that of the files.
    let mismatch: SecurityFailure?
    let identityChooser: ClientIdentity.Chooser?
    /// The source of ``roots``.
    let trustRoots: TrustRoots
    let keyLog: KeyLog?
    /// A unique key for this value, compared by libcurl among the options of connections.
    let key: String
    private let stamps: [FileStamp]

    /// Reads the files of settings.
    ///
    /// - Parameter earlier: The value that was created before from the same settings.
    init(_ settings: Settings, replacing earlier: ConnectionSecurity? = nil) throws(SecurityFailure) {
        // Clears errors of earlier calls from the thread's error queue, and those left after reading a file with
        // several objects.
        ERR_clear_error()
        defer { ERR_clear_error() }
        // Taken before the files are read, so that a concurrent change is detected at the next check.
        let paths =
            settings.trustRoots.paths + (settings.identity?.paths ?? [])
            + [settings.policy.revocationLists?.path].compactMap(\.self)
        stamps = paths.map(FileStamp.init)
        policy = settings.policy
        roots = try TrustStore(settings.trustRoots, settings.policy)
        let isPinned = policy.pinningMode == .certificate && !policy.pinnedCertificates.isEmpty
        pinned = isPinned ? try TrustStore(pinnedBy: policy) : nil
        pinnedKeys = policy.pinningMode == .publicKey ? try Self.pinnedKeys(of: policy) : []
        (identity, mismatch) = try Self.identity(settings.identity, replacing: earlier?.identity)
        identityChooser = settings.identityChooser
        trustRoots = settings.trustRoots
        keyLog = if let path = settings.keyLogPath { try KeyLog(path: path) } else { nil }
        key = "/dev/null/\(Self.made.wrappingAdd(1, ordering: .relaxed).newValue)"
    }

    /// Loads an identity. Its certificate and its key may be in two files, which cannot be replaced at the same time: while
    /// they do not match, the earlier one stays.
    private static func identity(
        _ identity: ClientIdentity?, replacing earlier: LoadedIdentity?
    ) throws(SecurityFailure) -> (LoadedIdentity?, SecurityFailure?) {
        guard let identity else { return (nil, nil) }
        do throws(SecurityFailure) {
            return (try LoadedIdentity(identity), nil)
        } catch {
            guard let earlier, case .badClientIdentity(.keyMismatch) = error.failure else { throw error }
            return (earlier, error)
        }
    }

    private static let made = Atomic(0)

    /// Whether the files from which the settings were read are unchanged.
    var isCurrent: Bool { stamps.allSatisfy(\.isCurrent) }

    /// Whether the policy requires only a valid chain and a matching name.
    var isPlain: Bool { policy == SecurityPolicy() }

    /// The time for which the validity of certificates is checked.
    var now: Date { policy.verificationTime ?? .now }

    private static func pinnedKeys(of policy: SecurityPolicy) throws(SecurityFailure) -> [PublicKeyPin] {
        var keys = policy.pins + policy.backupPins
        for der in policy.pinnedCertificates {
            let key = unsafe der.withUnsafeBytes { bytes in
                guard let certificate = unsafe X509Handle(der: bytes) else { return nil as PublicKeyPin? }
                return unsafe PublicKeyPin(of: certificate.raw)
            }
            guard let key else { throw SecurityFailure(failure: .badSecurityPolicy(.malformedCertificate)) }
            keys.append(key)
        }
        return keys
    }
}
