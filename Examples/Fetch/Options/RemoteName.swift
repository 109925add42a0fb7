// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// The name for a file that a URL suggests, made harmless.
package enum RemoteName {
    /// The last component of the URL's path without what could leave the folder, hide the file, look like an option or
    /// upset a terminal; nil when nothing is left.
    package static func of(_ url: URL) -> String? {
        let path = url.path(percentEncoded: false)
        guard let last = path.split(separator: "/", omittingEmptySubsequences: false).last else { return nil }
        var name = ""
        for scalar in last.unicodeScalars {
            let isHarmless = scalar != "\\" && !unprintable.contains(scalar.properties.generalCategory)
            name.unicodeScalars.append(isHarmless ? scalar : "_")
        }
        name = String(name.drop { $0 == "." || $0 == "-" || $0 == " " })
        // A name may have 255 bytes; a part of that is left for the name of the temporary file.
        while name.utf8.count > 200 { name.removeLast() }
        return name.isEmpty ? nil : name
    }

    private static let unprintable: Set<Unicode.GeneralCategory> = [
        .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned,
    ]
}
