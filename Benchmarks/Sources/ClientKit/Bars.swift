// SPDX-License-Identifier: MIT

/// The limits and whether one was exceeded.
package struct Bars {
    package private(set) var isAnyMissed = false

    package init() {}

    package mutating func check(_ words: String, _ figure: Double, atMost bar: Double) {
        let (figure, shown) = ((figure * 100).rounded() / 100, (bar * 100).rounded() / 100)
        print("\(words): \(figure) (at most \(shown))")
        if figure > shown { isAnyMissed = true }
    }
}
