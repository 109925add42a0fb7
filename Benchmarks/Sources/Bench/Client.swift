// SPDX-License-Identifier: MIT

/// The clients to measure, in the order of the table's columns.
enum Client: String {
    case curlTool = "curl"
    case aria2
    case rawCurl = "raw C"
    case asyncHTTPClient = "AHC"
    case urlSession = "URLSession"
    case ours = "AsyncNetworking"
    case oursOnEventLoop = "on its loop"
    case oursPinned = "with pins"
    case oursSegmented = "8 segments"

    /// The name of the executable, beside the driver; `nil` for an installed command.
    var executable: String? {
        switch self {
        case .curlTool, .aria2: nil
        case .rawCurl: "RawCurl"
        case .asyncHTTPClient: "AHCClient"
        case .urlSession: "URLSessionClient"
        case .ours, .oursOnEventLoop, .oursPinned, .oursSegmented: "OurClient"
        }
    }
}
