// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A status that `--fail` takes for an error.
struct StatusError: Error, CustomStringConvertible {
    let head: ResponseHead

    var description: String {
        let phrase = head.status.reasonPhrase
        return "The server answered \(head.status.code)\(phrase.isEmpty ? "" : " " + phrase)."
    }
}
