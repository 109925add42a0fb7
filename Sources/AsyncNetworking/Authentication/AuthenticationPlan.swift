// SPDX-License-Identifier: MIT

import ANHTTP

/// What was tried for one call with one asker, the server or the proxy, and what may be tried next.
struct AuthenticationPlan {
    /// What goes with the next request.
    private(set) var answer: TransportAuthentication.Answer?
    /// The protection space that the answer is for; `nil` for an answer that goes with the first request.
    private(set) var space: ProtectionSpace?
    /// The credentials that the asker has refused.
    private(set) var refused: [Credential] = []
    private var isRemembered: Bool
    private let limit: Int

    /// Creates the plan of a call.
    ///
    /// - Parameters:
    ///   - credential: The credential for the asker; `nil` where only a handler can have one.
    ///   - remembered: What the asker accepted before. It goes with the first request, unless the credential names one
    ///     scheme, which does.
    ///   - limit: The number of credentials that are tried.
    init(_ credential: Credential?, remembered: TransportAuthentication.Answer?, limit: Int) {
        self.limit = limit
        if let credential, let scheme = credential.schemes?.first, credential.schemes?.count == 1 {
            answer = TransportAuthentication.Answer(credential, by: scheme)
            isRemembered = false
        } else {
            answer = credential == nil || remembered?.credential == credential ? remembered : nil
            isRemembered = answer != nil
        }
    }

    /// Notes that the asker refused the request and asks for one of these spaces; false where enough was tried.
    ///
    /// The credential counts as refused, unless it went by a remembered scheme and would now go by another one: then it is
    /// the scheme that was wrong.
    mutating func noteRefusal(offering spaces: [ProtectionSpace]) -> Bool {
        if let answer, !isRemembered || answer.credential.space(among: spaces)?.scheme == answer.scheme {
            refused.append(answer.credential)
        }
        (answer, space, isRemembered) = (nil, nil, false)
        return refused.count < limit
    }

    /// Tries a credential by the first of these schemes that it may be used with, and returns what it answers; nil where
    /// there is none, or where the credential was refused before.
    mutating func tryCredential(
        _ credential: Credential, bySome spaces: some Sequence<ProtectionSpace>
    ) -> ProtectionSpace? {
        guard !refused.contains(credential), let space = credential.space(among: spaces) else { return nil }
        answer = TransportAuthentication.Answer(credential, by: space.scheme)
        self.space = space
        return space
    }
}

extension Credential {
    /// The first space by whose scheme it may be used; passwords are of no use for Negotiate, which takes the system's
    /// ticket.
    fileprivate func space(among spaces: some Sequence<ProtectionSpace>) -> ProtectionSpace? {
        spaces.first { schemes?.contains($0.scheme) ?? ($0.scheme != .negotiate) }
    }
}
