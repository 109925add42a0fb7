// SPDX-License-Identifier: MIT

/// A field of a multipart form, given with `-F` as `name=value` or `name=@file;type=image/png;filename=a.png`.
package struct FormField: Equatable {
    package let name: String
    package let content: Content

    /// The value of a field.
    package enum Content: Equatable {
        case text(String)
        case file(path: String, fileName: String?, mediaType: String?)
    }

    package init(_ text: String) throws(UsageError) {
        guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
            throw UsageError("“\(text)” is not a form field such as name=value or name=@file.")
        }
        name = String(text[..<equals])
        let value = text[equals...].dropFirst()
        guard value.hasPrefix("@") else {
            content = .text(String(value))
            return
        }
        let parts = value.dropFirst().split(separator: ";", omittingEmptySubsequences: false)
        var mediaType: String?
        var fileName: String?
        for part in parts.dropFirst() {
            if part.hasPrefix("type=") {
                mediaType = String(part.dropFirst(5))
            } else if part.hasPrefix("filename=") {
                fileName = String(part.dropFirst(9))
            } else {
                throw UsageError("“;\(part)” of -F is neither ;type= nor ;filename=.")
            }
        }
        guard let path = parts.first, !path.isEmpty else { throw UsageError("“\(text)” lacks a file name.") }
        content = .file(path: String(path), fileName: fileName, mediaType: mediaType)
    }
}
