// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
import HTTPTypes

extension ResponseHead {
    /// A name for a file with the response's content: the one of `Content-Disposition` (RFC 6266), or else the last
    /// path component of the URL; `nil` if neither is usable.
    ///
    /// It is a single path component without control characters, so that the name cannot lead to another directory. It
    /// may be the name of an existing file.
    public var suggestedFilename: String? {
        let disposition = headers.first { $0.name == .contentDisposition }.map { HeaderParameters($0.value) }
        return disposition?.fileName ?? HeaderParameters.safeName(url.path(percentEncoded: false))
    }
}
