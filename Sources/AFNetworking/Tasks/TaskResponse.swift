// SPDX-License-Identifier: MIT

/// A response whose suggested name is the URL's where the server names none, as on Apple's systems, and that names a file in
/// whatever folder it is appended to: in no other one.
final class TaskResponse: HTTPURLResponse, @unchecked Sendable {
    override var suggestedFilename: String? {
        let given = super.suggestedFilename
        let name = (given == "Unknown" ? nil : given) ?? url?.lastPathComponent ?? ""
        let plain = String(String.UnicodeScalarView(name.unicodeScalars.map { $0 == "/" || $0 == "\0" ? "_" : $0 }))
        return plain.isEmpty || plain == "_" || plain == "." || plain == ".." ? "Unknown" : plain
    }
}
