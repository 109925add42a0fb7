// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import COpenSSL
import FoundationEssentials
import Synchronization

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
            policy = options.hostPolicies.value(for: host) ?? options.policy
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
    let identityChooser: ClientIdentity.Chooser?
    /// The source of ``roots``.
    let trustRoots: TrustRoots
    let keyLog: KeyLog?
    /// A unique key for this value, compared by libcurl among the options of connections.
    let key: String
    private let stamps: [FileStamp]

    init(_ settings: Settings) throws(SecurityFailure) {
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
        identity = if let identity = settings.identity { try LoadedIdentity(identity) } else { nil }
        identityChooser = settings.identityChooser
        trustRoots = settings.trustRoots
        keyLog = if let path = settings.keyLogPath { try KeyLog(path: path) } else { nil }
        key = "/dev/null/\(Self.made.wrappingAdd(1, ordering: .relaxed).newValue)"
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
