// SPDX-License-Identifier: MIT

import ANSystem
public import AsyncNetworking

/// What is compared with pinned certificates.
public enum AFSSLPinningMode: UInt, Codable, Sendable {
    /// Nothing: the system's authorities decide.
    case none = 0
    /// The public keys of the chain.
    case publicKey = 1
    /// The certificates of the chain.
    case certificate = 2
}

/// What a server has shown in its handshake. On Linux it is a value of the library's.
public typealias SecTrust = ServerTrust

/// What servers must show before a request is sent to them; see ``ANHTTP/SecurityPolicy`` for the rules.
///
/// It is looked at when a task starts. All members may be used from any thread.
open class AFSecurityPolicy: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let state: Lock<State>

    private struct State: Codable, Sendable {
        var pinningMode: AFSSLPinningMode
        var pinnedCertificates: Set<Data>?
        var allowInvalidCertificates = false
        var validatesDomainName = true
        /// The policy of the core; nil after a change.
        var policy: SecurityPolicy?
        /// What asks a subclass.
        var evaluator: SecurityPolicy.Evaluator?

        var rules: TrustRules {
            TrustRules(
                mode: pinningMode, pins: pinnedCertificates ?? [], allowsInvalid: allowInvalidCertificates,
                validatesName: validatesDomainName)
        }

        enum CodingKeys: CodingKey {
            case pinningMode, pinnedCertificates, allowInvalidCertificates, validatesDomainName
        }
    }

    /// Creates a policy without pins.
    public override init() {
        state = Lock(State(pinningMode: .none))
        super.init()
    }

    /// Creates a policy that pins the certificates of the main bundle: the files beside the program that end in `.cer`.
    public convenience init(pinningMode: AFSSLPinningMode) {
        self.init(pinningMode: pinningMode, withPinnedCertificates: Self.certificates(in: .main))
    }

    /// Creates a policy that pins certificates, in DER.
    public convenience init(pinningMode: AFSSLPinningMode, withPinnedCertificates certificates: Set<Data>) {
        self.init()
        change { state in
            state.pinningMode = pinningMode
            state.pinnedCertificates = certificates
        }
    }

    /// A new policy without pins.
    open class func `default`() -> AFSecurityPolicy { AFSecurityPolicy() }

    /// The certificates, in DER, of a bundle's files that end in `.cer`, `.crt`, `.der` or `.pem`; files that have none are
    /// left out.
    open class func certificates(in bundle: Bundle) -> Set<Data> {
        guard let path = bundle.resourcePath else { return [] }
        return Set(SecurityPolicy.readableCertificates(inFolder: path))
    }

    /// What is compared with the pinned certificates.
    open var sslPinningMode: AFSSLPinningMode { state.withLock { $0.pinningMode } }

    /// The certificates, in DER.
    open var pinnedCertificates: Set<Data>? {
        get { state.withLock { $0.pinnedCertificates } }
        set { change { $0.pinnedCertificates = newValue } }
    }

    /// Whether chains that are not valid are accepted; false by default.
    open var allowInvalidCertificates: Bool {
        get { state.withLock { $0.allowInvalidCertificates } }
        set { change { $0.allowInvalidCertificates = newValue } }
    }

    /// Whether the certificate must be for the host; true by default.
    open var validatesDomainName: Bool {
        get { state.withLock { $0.validatesDomainName } }
        set { change { $0.validatesDomainName = newValue } }
    }

    /// Decides on a server, by the rules of this policy.
    ///
    /// The certificates are verified each time, for the domain that is asked for, against the authorities of the session that
    /// met them: what a ``SecTrust`` says of itself does not count. It is called within the handshake, on the thread of all
    /// connections: it must return at once.
    ///
    /// - Parameters:
    ///   - serverTrust: What the server has shown. One that was made by hand is judged against the system's authorities.
    ///   - domain: The name or address that the certificate must be for; `nil` validates none.
    open func evaluateServerTrust(_ serverTrust: SecTrust, forDomain domain: String?) -> Bool {
        var policy = TrustRules(self).policy(evaluator: nil)
        policy.trustRoots = serverTrust.trustRoots
        // A policy for the present keeps the authorities that it has read.
        if abs(serverTrust.date.timeIntervalSinceNow) > 60 { policy.verificationTime = serverTrust.date }
        return !policy.verdict(on: serverTrust.presented.map(\.der), for: domain).isRefused
    }

    /// The core's policy with the same rules.
    public var policy: SecurityPolicy {
        // What a subclass says may change at any time, but its evaluator stays: requests of equal policies share connections.
        guard type(of: self) == AFSecurityPolicy.self else {
            return TrustRules(self).policy(
                evaluator: state.withLock { state in
                    let evaluator = state.evaluator ?? makeEvaluator()
                    state.evaluator = evaluator
                    return evaluator
                })
        }
        return state.withLock { state in
            let policy = state.policy ?? state.rules.policy(evaluator: nil)
            state.policy = policy
            return policy
        }
    }

    private func makeEvaluator() -> SecurityPolicy.Evaluator {
        SecurityPolicy.Evaluator { [weak self] trust in
            guard let self else { return .followRules }
            return evaluateServerTrust(trust, forDomain: trust.host) ? .accept : .refuse("the policy refuses it")
        }
    }

    private func change(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            state.policy = nil
        }
    }

    // MARK: Copies and archives

    /// Restores a policy.
    public required init?(coder: NSCoder) {
        guard let archive = coder.decodeValue(State.self, forKey: "securityPolicy") else { return nil }
        state = Lock(archive)
        super.init()
    }

    /// Archives the policy.
    open func encode(with coder: NSCoder) {
        coder.encodeValue(state.withLock { $0 }, forKey: "securityPolicy")
    }

    /// True.
    open class var supportsSecureCoding: Bool { true }

    /// A policy with the same rules.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFSecurityPolicy()
        let own = state.withLock { $0 }
        copy.change { state in
            state = own
            state.evaluator = nil
        }
        return copy
    }
}
