// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl

extension EasyHandle {
    /// Sets what the transport itself does to show who makes a request. See CURLOPT_HTTPAUTH(3).
    ///
    /// With one scheme libcurl asks the server for its challenge by a request without a body.
    func apply(_ authentication: TransportAuthentication) throws(TransportError) {
        do throws(CurlFailure) {
            if let signature = authentication.signature {
                try set(CURLOPT_AWS_SIGV4, "aws:amz:\(signature.region):\(signature.service)")
                try set(CURLOPT_USERNAME, signature.accessKeyID)
                try set(CURLOPT_PASSWORD, signature.secretAccessKey)
            } else if let answer = authentication.server {
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

    /// The schemes that a proxy asked for. See CURLINFO_PROXYAUTH_AVAIL(3).
    var proxySchemes: Set<AuthenticationScheme> {
        let bits = long(CURLINFO_PROXYAUTH_AVAIL)
        return Set(AuthenticationScheme.allCases.filter { bits & $0.curlBit != 0 })
    }
}

extension TransportAuthentication {
    /// Checks that the linked libcurl can do it.
    func checkCapabilities() throws(TransportError) {
        let library = try CurlLibrary.current.get()
        for scheme in [server?.scheme, proxy?.scheme].compactMap(\.self)
        where !library.authenticationSchemes.contains(scheme) {
            throw .unsupported(scheme == .negotiate ? .negotiate : .ntlm)
        }
        if signature != nil, !library.hasAWSSignatures { throw .unsupported(.awsSignatures) }
    }

    /// Whether responses may be challenges that libcurl answers, not the result.
    var answersChallenges: Bool { signature == nil && server != nil || proxy != nil }

    /// Whether it authenticates a connection that must serve nobody else. libcurl sees to it for NTLM, not for Negotiate.
    var needsOwnConnection: Bool { server?.scheme == .negotiate || proxy?.scheme == .negotiate }
}

extension Credential {
    /// The schemes that libcurl may use for a proxy.
    var curlProxyBits: Int { (schemes ?? [.basic]).reduce(0) { $0 | $1.curlBit } }
}

extension TransferOptions {
    /// Whether responses may be challenges of the proxy, which libcurl answers.
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
