// SPDX-License-Identifier: MIT

import ANHTTP

/// What was tried for one call with one asker, the server or the proxy, and what may be tried next.
struct AuthenticationPlan {
    /// What goes with the next request.
    private(set) var answer: TransportAuthentication.Answer?
    /// The credentials that the asker has refused.
    private(set) var refused: [Credential] = []
    private let limit: Int

    init(answer: TransportAuthentication.Answer?, limit: Int) {
        self.answer = answer
        self.limit = limit
    }

    /// The asker refused the request: what went with it is no good. False where enough was tried.
    mutating func noteRefusal() -> Bool {
        if let answer { refused.append(answer.credential) }
        answer = nil
        return refused.count < limit
    }

    /// Tries a credential by the first of these schemes that it may be used with, and returns what it answers; nil where
    /// there is none, or where the credential was refused before.
    mutating func tryCredential(
        _ credential: Credential, bySome spaces: some Sequence<ProtectionSpace>
    ) -> ProtectionSpace? {
        guard !refused.contains(credential), let space = spaces.first(where: { credential.suits($0.scheme) })
        else { return nil }
        answer = TransportAuthentication.Answer(credential, by: space.scheme)
        return space
    }

    /// What goes with a request before the asker has asked: a credential that names one scheme, or one that was taken before.
    static func start(
        _ credential: Credential?, remembered: TransportAuthentication.Answer?
    ) -> TransportAuthentication.Answer? {
        guard let credential else { return remembered }
        if let scheme = credential.schemes?.first, credential.schemes?.count == 1 {
            return TransportAuthentication.Answer(credential, by: scheme)
        }
        return remembered?.credential == credential ? remembered : nil
    }
}

extension Credential {
    /// Whether it may be used with a scheme; passwords are of no use for Negotiate, which takes the system's ticket.
    fileprivate func suits(_ scheme: AuthenticationScheme) -> Bool {
        schemes?.contains(scheme) ?? (scheme != .negotiate)
    }
}
