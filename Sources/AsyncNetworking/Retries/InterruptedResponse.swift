// SPDX-License-Identifier: MIT

import ANHTTP

/// The failure of a response that was already passed on, and can be continued by another request.
///
/// It is thrown by the reader of a response to the step that retries. That step repeats the request as changed by
/// `prepare` if the retry policy permits it, and otherwise throws `error`.
struct InterruptedResponse: Error {
    /// The failure of the response.
    let error: TransportError
    /// Changes a request to ask for the rest of the response.
    let prepare: @Sendable (inout Request) -> Void
}
