// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

extension Pipeline {
    /// Returns the URL to send a request to: with `https` if its host is known to require it.
    func strictURL(_ url: URL) -> URL {
        usesStrictTransport && url.isPlainHTTP && strictTransport.requiresTLS(for: url) ? url.withTLS : url
    }
}
