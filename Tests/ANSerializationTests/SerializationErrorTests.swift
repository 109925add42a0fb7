// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct SerializationErrorTests {
    @Test func `descriptions of URLs contain no secrets`() {
        let url = "http://user:secret@h:x/p?token=secret#secret"
        expectFailure {
            try URLResolver(base: nil).resolve(url)
        } where: { error in
            "\(error)" == "“…@h:x/p” is not a URL: it does not follow RFC 3986."
        }
    }

    @Test(arguments: ["https://user:pa#ss@host/", "https://user:pa?ss@host/", "https://user:pass@\u{301}host/ "])
    func `descriptions of malformed URLs contain no part of a password`(url: String) {
        let description = SerializationError.url(.malformed(url, reason: "it is malformed")).description
        #expect(!description.contains("pa"), "\(description)")
        #expect(!description.contains("user"))
    }

    @Test func `descriptions say what to check`() {
        expectFailure {
            try URLResolver(base: nil).resolve("user:1")
        } where: { error in
            "\(error)" == "The scheme “user” of “user:1” is neither http nor https. If this is a relative path with a "
                + "colon in its first segment, write “./” in front."
        }
        expectFailure {
            try URLResolver(base: nil).resolve("users/7")
        } where: { error in
            "\(error)" == "“users/7” is relative, but there is no base URL; give one, or an absolute http or https URL."
        }
        expectFailure {
            try URLEncodedFormEncoder().encode(["a": Parameters.double(.nan)])
        } where: { error in
            "\(error)" == "The parameter “a” is NaN or infinite, which cannot be sent; check how it was computed."
        }
    }

    @Test func `hostile text is abbreviated and made printable`() {
        let url = "ftp://h/\u{202E}" + String(repeating: "x", count: 10_000)
        expectFailure {
            try URLResolver(base: nil).resolve(url)
        } where: { error in
            let text = "\(error)"
            return text.utf8.count < 400 && !text.unicodeScalars.contains("\u{202E}")
        }
    }
}
