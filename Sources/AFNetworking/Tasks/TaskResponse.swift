// SPDX-License-Identifier: MIT

/// A response whose suggested name is the URL's where the server names none, as on Apple's systems.
final class TaskResponse: HTTPURLResponse, @unchecked Sendable {
    override var suggestedFilename: String? {
        guard let name = super.suggestedFilename, name != "Unknown" else {
            guard let last = url?.lastPathComponent, !last.isEmpty, last != "/" else { return "Unknown" }
            return last
        }
        return name
    }
}
