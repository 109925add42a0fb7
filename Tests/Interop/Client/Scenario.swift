// SPDX-License-Identifier: MIT

import FoundationEssentials

/// What the program does, as `Tests/Interop/matrix` tells it in JSON.
struct Scenario: Decodable, Sendable {
    /// What each round does, one after the other.
    let steps: [Step]
    /// The number of rounds that are counted.
    let rounds: Int
    /// The number of rounds at the same time.
    var workers: Int?
    /// The shortest and longest wait before a round in seconds. Each worker then has a session of its own, makes its
    /// connection in a round that is not counted, and leaves it idle between rounds.
    var gaps: [Double]?
    /// Whether each round has a session of its own.
    var isFresh: Bool?
    /// The first part of the value of `X-Request-ID`, which differs for each request.
    let id: String
    /// `1` or `2`; whatever TLS negotiates if `nil`.
    var version: Int?
    /// The number of retries.
    var retries: Int?
    /// The PEM file with the authority.
    var authority: String?
    /// The PEM file with the client's certificates; the key is in `key`.
    var certificates: String?
    /// The PEM file with the client's key.
    var key: String?
    /// User and password.
    var credential: [String]?
    /// The URL of an HTTP proxy.
    var proxy: String?
    /// The directory for downloads.
    var directory: String?

    /// A request and what its response must have.
    struct Step: Decodable, Sendable {
        let method: String
        let url: String
        /// The size of the body; no body if `nil`.
        var body: Int?
        /// Whether the length of the body is unknown when sending begins.
        var isStream: Bool?
        /// How long to wait for `100 Continue`, in seconds; not asked for if `nil`.
        var continueTimeout: Double?
        /// The size of the response's body.
        var size: Int?
        /// The number of bytes that the response says the server received.
        var received: Int?
        /// The status of an interim response that must come first.
        var interim: Int?
        /// The name of a trailer field.
        var trailer: String?
        /// Whether the response is a download that is cancelled halfway, resumed and compared in size.
        var isResumed: Bool?
    }
}
