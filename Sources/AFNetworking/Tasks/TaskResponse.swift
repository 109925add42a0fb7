// SPDX-License-Identifier: MIT

/// A response with a safe suggested file name. If the server suggests none, it is the last component of the URL, as on
/// Apple's platforms. It contains no `/` and is neither `.` nor `..`, so appending it to a directory gives a file in
/// that directory.
final class TaskResponse: HTTPURLResponse, @unchecked Sendable {
    override var suggestedFilename: String? {
        let given = super.suggestedFilename
        let name = (given == "Unknown" ? nil : given) ?? url?.lastPathComponent ?? ""
        let plain = String(String.UnicodeScalarView(name.unicodeScalars.map { $0 == "/" || $0 == "\0" ? "_" : $0 }))
        return plain.isEmpty || plain == "_" || plain == "." || plain == ".." ? "Unknown" : plain
    }
}
