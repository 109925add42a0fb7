// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// What servers and proxies have taken, so that it goes with later requests from the start.
final class CredentialMemory: Sendable {
    private let answers = Lock<[Asker: TransportAuthentication.Answer]>([:])

    /// Who takes credentials.
    enum Asker: Hashable {
        /// A server.
        case server(Origin)
        /// The proxy that such a policy leads to.
        case proxy(ProxyPolicy)
    }

    /// What the asker took last.
    subscript(asker: Asker) -> TransportAuthentication.Answer? {
        get { answers.withLock { $0[asker] } }
        set { answers.withLock { $0[asker] = newValue } }
    }

    /// Forgets what the asker does not take any more, unless something newer is there.
    func forget(_ answer: TransportAuthentication.Answer, of asker: Asker) {
        answers.withLock { if $0[asker] == answer { $0[asker] = nil } }
    }
}
