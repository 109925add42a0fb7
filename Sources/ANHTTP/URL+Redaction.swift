// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension URL {
    /// The URL as text for messages: user information and query values, which may be secrets, are left out.
    package var redactedDescription: String {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return "(invalid URL)" }
        components.user = nil
        components.password = nil
        if let query = components.percentEncodedQuery {
            components.percentEncodedQuery =
                query.split(separator: "&", omittingEmptySubsequences: false)
                .map { pair in pair.firstIndex(of: "=").map { pair[...$0] + "…" } ?? pair }
                .joined(separator: "&")
                .replacing("…", with: "%E2%80%A6")
        }
        return (components.string ?? "(invalid URL)").replacing("%E2%80%A6", with: "…")
    }
}
