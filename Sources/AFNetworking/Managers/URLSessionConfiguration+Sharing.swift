// SPDX-License-Identifier: MIT

import AsyncNetworking

// A manager on an existing core session is created by the designated initializer, which takes a configuration, so that
// an override in a subclass is called. The configuration carries the session.

extension URLSessionConfiguration {
    /// Returns a configuration that carries a core session.
    static func sharing(_ session: SessionManager) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = [SharedSession(): session]
        return configuration
    }

    /// The core session that the configuration carries; `nil` if it carries no session.
    var sharedSession: SessionManager? {
        httpAdditionalHeaders?[SharedSession()] as? SessionManager
    }

    /// Removes the core session from the configuration and returns it; `nil` if the configuration carries no session.
    func takeSharedSession() -> SessionManager? {
        guard let session = sharedSession else { return nil }
        httpAdditionalHeaders = nil
        return session
    }
}

/// The key of the core session in `httpAdditionalHeaders`. It is not a string and so is no header field name.
private struct SharedSession: Hashable {}
