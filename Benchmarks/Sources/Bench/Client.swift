// SPDX-License-Identifier: MIT

/// Who is measured, in the order of the table.
enum Client: String {
    case curlTool = "curl"
    case rawCurl = "raw C"
    case asyncHTTPClient = "AHC"
    case urlSession = "URLSession"
    case ours = "AsyncNetworking"
    case oursPinned = "with pins"

    /// The program, beside the driver; nil for a tool of the system.
    var executable: String? {
        switch self {
        case .curlTool: nil
        case .rawCurl: "RawCurl"
        case .asyncHTTPClient: "AHCClient"
        case .urlSession: "URLSessionClient"
        case .ours, .oursPinned: "OurClient"
        }
    }
}
