// SPDX-License-Identifier: MIT

import COpenSSL
public import FoundationEssentials

/// A failed call of OpenSSL, with the messages of its error stack; thrown if a certificate, or a server with TLS,
/// cannot be created.
public struct OpenSSLError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The name of the called function, such as `SSL_CTX_new`.
    public let call: String
    /// The messages of OpenSSL's error queue, oldest first; empty if OpenSSL gave no reason. See ERR_error_string_n(3).
    public let messages: [String]

    /// Returns an error with the messages of the calling thread's error stack, and empties the stack.
    ///
    /// See ERR_get_error(3).
    static func last(_ call: String) -> OpenSSLError {
        var messages: [String] = []
        while true {
            let code = ERR_get_error()
            guard code != 0 else { return OpenSSLError(call: call, messages: messages) }
            var text = [CChar](repeating: 0, count: 256)
            unsafe ERR_error_string_n(code, &text, text.count)
            messages.append(String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
        }
    }

    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// A text such as `SSL_accept failed: …`: the name of the called function, and the messages, separated by
    /// semicolons, or `no reason given` without messages.
    public var description: String {
        "\(call) failed: \(messages.isEmpty ? "no reason given" : messages.joined(separator: "; "))"
    }
}
