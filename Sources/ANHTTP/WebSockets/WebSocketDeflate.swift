// SPDX-License-Identifier: MIT

/// The negotiated parameters of the extension `permessage-deflate` (RFC 7692 §7).
package struct WebSocketDeflate: Hashable, Sendable {
    /// Whether the server compresses each message on its own (`server_no_context_takeover`).
    package var serverResets = false
    /// Whether the client compresses each message on its own (`client_no_context_takeover`).
    package var clientResets = false

    package init(serverResets: Bool = false, clientResets: Bool = false) {
        self.serverResets = serverResets
        self.clientResets = clientResets
    }

    /// The offer in `Sec-WebSocket-Extensions`. It does not permit the server to limit the client's window, because
    /// zlib cannot compress with a window of 256 bytes.
    package static let offer = "permessage-deflate"

    /// Parses the values of a response's `Sec-WebSocket-Extensions` fields.
    ///
    /// - Parameters:
    ///   - values: The values of the fields.
    ///   - isOffered: Whether the request offers the extension.
    /// - Returns: The parameters; `nil` if the server accepted no extension.
    package static func negotiated(
        _ values: [String], isOffered: Bool
    ) throws(WebSocketViolation) -> WebSocketDeflate? {
        let extensions = HeaderScanner.members(of: values)
        guard let accepted = extensions.first else { return nil }
        let parts = accepted.split(at: ";", omittingEmptySubsequences: false).map(\.trimmingBlanks)
        guard isOffered, extensions.count == 1, parts[0].lowercased() == offer else {
            throw WebSocketViolation("The server accepted an extension that was not offered: \(accepted.prefix(80)).")
        }
        var result = WebSocketDeflate()
        var names: Set<String> = []
        for part in parts.dropFirst() {
            let pair = part.split(at: "=", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmingBlanks)
            let name = pair[0].lowercased()
            let isValid =
                switch name {
                case "server_no_context_takeover", "client_no_context_takeover": pair.count == 1
                case "server_max_window_bits": pair.count == 2 && isWindow(pair[1])
                default: false
                }
            guard isValid, names.insert(name).inserted else {
                throw WebSocketViolation("The server chose an invalid parameter of \(offer): \(part.prefix(80)).")
            }
        }
        result.serverResets = names.contains("server_no_context_takeover")
        result.clientResets = names.contains("client_no_context_takeover")
        return result
    }

    /// Returns the maximum size of a message of `size` bytes in compressed form. Without compressible bytes, zlib adds up
    /// to an eighth to them, and a few bytes to each block. See deflateBound in zlib.h.
    package static func bound(of size: Int) -> Int {
        let (bound, overflows) = size.addingReportingOverflow(size / 8 + size / 64 + 64)
        return overflows ? .max : bound
    }

    /// Whether a value is a base-2 logarithm of a window size, 8 to 15, possibly quoted.
    private static func isWindow(_ value: String) -> Bool {
        let isQuoted = value.count > 2 && value.hasPrefix("\"") && value.hasSuffix("\"")
        let digits = isQuoted ? value.dropFirst().dropLast() : value[...]
        return ["8", "9", "10", "11", "12", "13", "14", "15"].contains(digits)
    }
}
