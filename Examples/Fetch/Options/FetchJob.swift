// SPDX-License-Identifier: MIT

package import AsyncNetworking

/// One URL to fetch.
package struct FetchJob: Sendable {
    /// Its position on the command line.
    package var index: Int
    /// What it is called in messages; empty when it is the only one.
    package var name: String
    /// What is sent.
    package var request: Request
    /// Where the body goes.
    package var target: OutputTarget
}
