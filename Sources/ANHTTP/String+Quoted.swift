// SPDX-License-Identifier: MIT

// Parts of sentences.

extension String {
    /// The text in quotation marks; words for an empty one, whose marks would look like a mistake.
    package var quoted: String { isEmpty ? "an empty text" : "“\(self)”" }
}

extension Duration {
    /// The duration in whole milliseconds, whose text is short.
    package var rounded: Duration {
        // Far beyond, whole milliseconds may not be representable.
        components.seconds.magnitude < 1_000_000_000_000 ? .milliseconds((self / .milliseconds(1)).rounded()) : self
    }
}
