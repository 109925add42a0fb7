// SPDX-License-Identifier: MIT

import ANHTTP
import COpenSSL

extension Handshake {
    /// Installs the callback that selects a client identity when the server requests a certificate. See
    /// SSL_CTX_set_cert_cb(3): on a client, it is called only in this case.
    static func askForIdentity(_ context: OpaquePointer) {
        unsafe SSL_CTX_set_cert_cb(
            context,
            { session, _ in
                guard let session = unsafe session, let handshake = unsafe Handshake.of(session) else { return 1 }
                return unsafe handshake.chooseIdentity(for: session) ? 1 : 0
            }, nil)
    }

    /// Installs the selected identity. Returns `false` if it cannot be used, which aborts the handshake.
    private func chooseIdentity(for session: OpaquePointer) -> Bool {
        switch security.identityChooser?.choose(for: host.text) {
        case nil, .some(.none):
            noteMissingIdentity()
            return true
        case .refuse(let reason):
            refuse(.rejected(reason), nil)
            return false
        case .identity(let identity):
            do throws(SecurityFailure) {
                let loaded = try LoadedIdentity(identity)
                try loaded.check(at: security.now)
                return unsafe loaded.install(intoSession: session)
            } catch {
                refuse(error.failure ?? .handshake, nil)
                return false
            }
        }
    }
}
