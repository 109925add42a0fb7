// SPDX-License-Identifier: MIT

package import AsyncNetworking

/// A URL to fetch.
package struct FetchJob: Sendable {
    /// The position of the URL on the command line.
    package var index: Int
    /// The name of the job in messages, the URL without its secrets; empty if it is the only one.
    package var name: String
    /// The request to send.
    package var request: Request
    /// The destination of the body.
    package var target: OutputTarget
    /// Whether the URL's scheme is `ws` or `wss`.
    package var isWebSocket = false
    /// Whether the body is a file whose upload is resumed.
    package var isResumable = false
}
