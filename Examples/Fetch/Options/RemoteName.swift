// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// The file name in a URL, made safe.
package enum RemoteName {
    /// Returns the last component of the URL's path without characters that could leave the directory, hide the file,
    /// look like an option, or control a terminal; `nil` if nothing remains.
    package static func of(_ url: URL) -> String? {
        // Of scalars: as a part of another character, a slash would still be one to the system.
        let path = url.path(percentEncoded: false).unicodeScalars
        guard let last = path.split(separator: "/", omittingEmptySubsequences: false).last else { return nil }
        var name = ""
        for scalar in last.drop(while: { $0 == "." || $0 == "-" || $0 == " " }) {
            let isHarmless = scalar != "\\" && !unprintable.contains(scalar.properties.generalCategory)
            name.unicodeScalars.append(isHarmless ? scalar : "_")
        }
        // File names are limited to 255 bytes; the temporary file needs a longer name.
        while name.utf8.count > 200 { name.removeLast() }
        return name.isEmpty ? nil : name
    }

    private static let unprintable: Set<Unicode.GeneralCategory> = [
        .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned,
    ]
}
