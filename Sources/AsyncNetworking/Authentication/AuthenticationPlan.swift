// SPDX-License-Identifier: MIT

import ANHTTP

/// The credentials tried for one call with either the server or the proxy, and the one to send next.
struct AuthenticationPlan {
    /// The answer to send with the next request; `nil` for none.
    private(set) var answer: TransportAuthentication.SchemeCredential?
    /// The protection space of the answer; `nil` for an answer sent before any challenge.
    private(set) var space: ProtectionSpace?
    /// The refused credentials, oldest first.
    private(set) var refused: [Credential] = []
    /// Those of them that were meant for the realm that refused them: not one that was sent because the path is below
    /// that of another realm.
    private(set) var failures: [Credential] = []
    private var isCached: Bool
    /// The realm in which a cached answer was accepted; `nil` if it is unknown.
    private let cachedRealm: String?
    private let limit: Int

    /// Creates the plan of a call.
    ///
    /// - Parameters:
    ///   - credential: The credential to use; `nil` if only a handler can provide one.
    ///   - cached: The answer accepted earlier, and its realm. It is sent with the first request, unless `credential` names a
    ///     single scheme, which then is sent instead.
    ///   - limit: The maximum number of credentials to try.
    init(
        _ credential: Credential?, cached: (answer: TransportAuthentication.SchemeCredential, realm: String?)?,
        limit: Int
    ) {
        self.limit = limit
        cachedRealm = cached?.realm
        if let credential, let scheme = credential.schemes?.first, credential.schemes?.count == 1 {
            answer = TransportAuthentication.SchemeCredential(credential, by: scheme)
            isCached = false
        } else {
            answer = credential == nil || cached?.answer.credential == credential ? cached?.answer : nil
            isCached = answer != nil
        }
    }

    /// Records that the request was refused with challenges for these protection spaces.
    ///
    /// The credential counts as refused, unless it was sent by a cached scheme and would now be sent by another:
    /// then the scheme was wrong, not the credential.
    ///
    /// - Returns: `false` if the limit of credentials is reached.
    mutating func noteRefusal(offering spaces: [ProtectionSpace]) -> Bool {
        if let answer {
            let space = answer.credential.space(among: spaces)
            if !isCached || space?.scheme == answer.scheme {
                refused.append(answer.credential)
                if !isCached || cachedRealm == nil || space?.realm == cachedRealm { failures.append(answer.credential) }
            }
        }
        (answer, space, isCached) = (nil, nil, false)
        return refused.count < limit
    }

    /// Selects a credential as the next answer, with the first of these spaces whose scheme it supports.
    ///
    /// - Returns: The selected space; `nil` if no scheme matches, or if the credential was refused before.
    mutating func tryCredential(
        _ credential: Credential, bySome spaces: some Sequence<ProtectionSpace>
    ) -> ProtectionSpace? {
        guard !refused.contains(credential), let space = credential.space(among: spaces) else { return nil }
        answer = TransportAuthentication.SchemeCredential(credential, by: space.scheme)
        self.space = space
        return space
    }
}

extension Credential {
    /// Returns the first space whose scheme the credential supports. A password cannot be used for Negotiate, which
    /// takes the system's Kerberos ticket.
    fileprivate func space(among spaces: some Sequence<ProtectionSpace>) -> ProtectionSpace? {
        spaces.first { schemes?.contains($0.scheme) ?? ($0.scheme != .negotiate) }
    }
}
