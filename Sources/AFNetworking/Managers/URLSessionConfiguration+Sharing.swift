// SPDX-License-Identifier: MIT

import AsyncNetworking

// A manager on a session of the core's is made by the same initializer as any other one, so that a subclass which overrides
// that one is asked too. The session travels in the configuration.

extension URLSessionConfiguration {
    /// A configuration that stands for a session of the core's.
    static func sharing(_ session: SessionManager) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = [SharedSession(): session]
        return configuration
    }

    /// The session that the configuration stands for.
    var sharedSession: SessionManager? {
        httpAdditionalHeaders?[SharedSession()] as? SessionManager
    }

    /// The session that the configuration stands for, which is taken out of it.
    func takeSharedSession() -> SessionManager? {
        guard let session = sharedSession else { return nil }
        httpAdditionalHeaders = nil
        return session
    }
}

/// The key of a session in the header fields of a configuration: no field has it.
private struct SharedSession: Hashable {}
