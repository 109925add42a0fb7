// SPDX-License-Identifier: MIT

import ANHTTP
import COpenSSL
import FoundationEssentials
import Synchronization

/// What a connection's TLS is made with, besides libcurl's own options: read and checked before, and then only used.
final class ConnectionSecurity: Sendable {
    /// What it was made of.
    struct Settings: Hashable {
        var policy: SecurityPolicy
        var identity: ClientIdentity?
        var identityChooser: ClientIdentity.Chooser?
        var trustRoots: TrustRoots
        var keyLogPath: String?

        /// The settings for a host.
        init(_ options: TLSOptions, host: HostName) {
            policy = options.hostPolicies.value(for: host) ?? options.policy
            identity = options.hostIdentities.value(for: host) ?? options.identity
            identityChooser = options.identityChooser
            trustRoots = policy.trustRoots ?? options.trustRoots
            keyLogPath = options.keyLogPath
        }

        /// The settings without a policy or an identity, for any host.
        init(plain options: TLSOptions) {
            policy = SecurityPolicy()
            trustRoots = options.trustRoots
        }
    }

    let policy: SecurityPolicy
    let roots: TrustStore
    /// The pinned certificates; nil where they are no anchors.
    let pinned: TrustStore?
    /// All pinned keys, those of pinned certificates among them.
    let pinnedKeys: [PublicKeyPin]
    let identity: LoadedIdentity?
    let identityChooser: ClientIdentity.Chooser?
    /// What ``roots`` was read from.
    let trustRoots: TrustRoots
    let keyLog: KeyLog?
    /// Stands for this value where libcurl compares the options of connections.
    let key: String
    private let stamps: [FileStamp]

    init(_ settings: Settings) throws(SecurityFailure) {
        // Neither errors of others nor those of files with two things in them are left on the thread's stack.
        ERR_clear_error()
        defer { ERR_clear_error() }
        // Taken before the files are read: a change meanwhile is then seen the next time.
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

    /// Whether the files that it was read from are as they were.
    var isCurrent: Bool { stamps.allSatisfy(\.isCurrent) }

    /// Whether it asks for no more than a valid chain and the right name.
    var isPlain: Bool { policy == SecurityPolicy() }

    /// The time at which certificates are looked at.
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
