// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
import HTTPTypes

extension ResponseHead {
    /// A name for a file with the response's content: the one of `Content-Disposition` (RFC 6266), or else the last
    /// component of the URL's path, percent-decoded if that is UTF-8; `nil` if neither is usable.
    ///
    /// Of `Content-Disposition`, `filename*` takes precedence over `filename`. Only the last component after `/` or `\`
    /// is used, without control characters, so that the name cannot lead to another directory; an empty one, `.` and
    /// `..` are not usable. The name may be that of an existing file, begin with a dot, or be longer than the file
    /// system permits.
    public var suggestedFilename: String? {
        let disposition = headers.first { $0.name == .contentDisposition }.map { HeaderParameters($0.value) }
        if let name = disposition?.fileName { return name }
        // Divided before it is decoded, because another component need not be UTF-8.
        let last = url.path(percentEncoded: true).split(separator: "/").last ?? ""
        let decoded = HeaderParameters.percentDecoded(last).flatMap { String(validating: $0, as: UTF8.self) }
        return HeaderParameters.safeName(decoded ?? String(last))
    }
}
