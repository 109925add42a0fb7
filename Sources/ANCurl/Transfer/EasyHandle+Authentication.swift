// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl

extension EasyHandle {
    /// Sets the options for authentication by the transport. See CURLOPT_HTTPAUTH(3).
    ///
    /// With exactly one scheme, libcurl sends a request without a body to obtain the server's challenge.
    func apply(_ authentication: TransportAuthentication) throws(TransportError) {
        try authentication.server?.credential.check(for: "Authorization")
        try authentication.proxy?.credential.check(for: "Proxy-Authorization")
        do throws(CurlFailure) {
            if let answer = authentication.server {
                try set(CURLOPT_HTTPAUTH, answer.scheme.curlBit)
                try set(CURLOPT_USERNAME, answer.credential.user)
                try set(CURLOPT_PASSWORD, answer.credential.password)
            }
            if let answer = authentication.proxy {
                try set(CURLOPT_PROXYAUTH, answer.scheme.curlBit)
                try set(CURLOPT_PROXYUSERNAME, answer.credential.user)
                try set(CURLOPT_PROXYPASSWORD, answer.credential.password)
            }
        } catch {
            throw error.transportError
        }
    }

    /// Removes the credentials for parties that require none. Without the change of the scheme, libcurl would send an
    /// empty user name.
    func removeCredentials(of parties: Probes) throws(TransportError) {
        do throws(CurlFailure) {
            if parties.contains(.server) {
                try set(CURLOPT_HTTPAUTH, CCURL_AUTH_BASIC)
                try set(CURLOPT_USERNAME, nil)
                try set(CURLOPT_PASSWORD, nil)
            }
            if parties.contains(.proxy) {
                try set(CURLOPT_PROXYAUTH, CCURL_AUTH_BASIC)
                try set(CURLOPT_PROXYUSERNAME, nil)
                try set(CURLOPT_PROXYPASSWORD, nil)
            }
        } catch {
            throw error.transportError
        }
    }

    /// The authentication schemes offered by a proxy. See CURLINFO_PROXYAUTH_AVAIL(3).
    var proxySchemes: Set<AuthenticationScheme> {
        let bits = long(CURLINFO_PROXYAUTH_AVAIL)
        return Set(AuthenticationScheme.allCases.filter { bits & $0.curlBit != 0 })
    }
}

extension TransportAuthentication {
    /// Checks that the linked libcurl supports the authentication.
    func checkCapabilities() throws(TransportError) {
        let library = try CurlLibrary.current.get()
        for scheme in [server?.scheme, proxy?.scheme].compactMap(\.self)
        where !library.authenticationSchemes.contains(scheme) {
            throw TransportError(.unsupported(scheme == .negotiate ? .negotiate : .ntlm))
        }
    }

    /// Whether responses may be challenges to which libcurl responds, instead of the final response.
    var answersChallenges: Bool { server != nil || proxy != nil }

    /// Whether the authentication applies to a connection, which must then not be shared. libcurl ensures this for
    /// NTLM, but not for Negotiate.
    var needsOwnConnection: Bool { server?.scheme == .negotiate || proxy?.scheme == .negotiate }
}

extension Credential {
    /// Checks that libcurl sends the credential unchanged: it would write a line break of a user name into the field of
    /// Digest, where another field would begin, and end each text at a NUL.
    ///
    /// - Parameter field: The name of the field, for the error.
    func check(for field: String) throws(TransportError) {
        guard !user.hasControlCharacters, !password.utf8.contains(0) else {
            throw TransportError(.invalidRequest(.headerValue(name: field)))
        }
    }

    /// The bit mask of the schemes that libcurl may use for a proxy.
    var curlProxyBits: Int { (schemes ?? [.basic]).reduce(0) { $0 | $1.curlBit } }
}

extension TransferOptions {
    /// Whether responses may be challenges of the proxy to which libcurl responds.
    var answersProxyChallenges: Bool {
        guard case .proxy(let proxy) = proxy, let schemes = proxy.credential?.schemes else { return false }
        return schemes != [.basic]
    }
}

extension AuthenticationScheme {
    fileprivate var curlBit: Int {
        switch self {
        case .basic: CCURL_AUTH_BASIC
        case .digest: CCURL_AUTH_DIGEST
        case .ntlm: CCURL_AUTH_NTLM
        case .negotiate: CCURL_AUTH_NEGOTIATE
        }
    }
}
