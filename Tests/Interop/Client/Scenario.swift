// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The requests to perform, as `Tests/Interop/interop` passes them in JSON.
struct Scenario: Decodable, Sendable {
    /// The steps of a round, performed in order.
    let steps: [Step]
    /// The number of rounds to count.
    let rounds: Int
    /// The number of concurrent rounds.
    var workers: Int?
    /// The shortest and longest wait before a round, in seconds. Each worker then has its own session, opens its
    /// connection in a round that is not counted, and leaves it idle between rounds.
    var gaps: [Double]?
    /// Whether each round has its own session.
    var isFresh: Bool?
    /// The prefix of the `X-Request-ID` values, which are unique per request.
    let id: String
    /// The HTTP version, `1` or `2`; negotiated with TLS if `nil`.
    var version: Int?
    /// The number of retries.
    var retries: Int?
    /// The PEM file with the trusted authority.
    var authority: String?
    /// The PEM file with the client certificates; the private key is in `key`.
    var certificates: String?
    /// The PEM file with the private key of the client.
    var key: String?
    /// The user name and the password.
    var credential: [String]?
    /// The URL of an HTTP proxy.
    var proxy: String?
    /// The user name and the password for the proxy, followed by the names of the permitted schemes.
    var proxyCredential: [String]?
    /// The directory for downloads.
    var directory: String?

    /// A request and the expected response.
    struct Step: Decodable, Sendable {
        let method: String
        let url: String
        /// The size of the request body; no body if `nil`.
        var body: Int?
        /// Whether the body is sent without a known length.
        var isStream: Bool?
        /// The timeout for `100 Continue`, in seconds; not requested if `nil`.
        var continueTimeout: Double?
        /// The expected size of the response body.
        var size: Int?
        /// The expected number of bytes that the server reports to have received.
        var received: Int?
        /// The expected status code of an interim response before the final one.
        var interim: Int?
        /// The name of an expected trailer field.
        var trailer: String?
        /// Whether the response is a download that is cancelled halfway, resumed, and checked for its size.
        var isResumed: Bool?
    }
}
