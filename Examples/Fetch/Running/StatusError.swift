// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A status code that `--fail` treats as an error.
struct StatusError: Error, CustomStringConvertible {
    let head: ResponseHead

    var description: String {
        let phrase = head.status.reasonPhrase
        return "The server answered \(head.status.code)\(phrase.isEmpty ? "" : " " + phrase.printable)."
    }
}
