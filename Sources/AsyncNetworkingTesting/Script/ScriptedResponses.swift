// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials
public import HTTPTypes

// The responses of a server in the notation of a mock, and those of a mock in the notation of a server: statuses are
// numbers or names, and header fields have names as text or as values.

extension Script {
    /// Returns a script that responds with a status such as `.notFound` and an empty body, by default without header
    /// fields but `Content-Length`, which responses with status 1xx, 204 and 304 and those to HEAD do not have.
    ///
    /// Only the code of the status is used: the reason phrase is the default of ``Reply/reason``.
    public static func status(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) -> Script {
        .status(status.code, headers: HeaderPairs(headers))
    }

    /// Returns a script that responds with JSON text, a status such as `.created`, whose reason phrase is ignored, and
    /// `Content-Type: application/json`. The text is sent in UTF-8 and not validated.
    public static func json(_ text: String, status: HTTPResponse.Status) -> Script {
        .json(text, status: status.code)
    }

    /// Returns a script that responds with text in UTF-8, a status such as `.created`, whose reason phrase is ignored,
    /// and `Content-Type: text/plain; charset=utf-8`.
    public static func text(_ text: String, status: HTTPResponse.Status) -> Script {
        .text(text, status: status.code)
    }

    /// Returns a script that responds with status 200, bytes, and header fields such as `[.contentType: "image/png"]`,
    /// to which the server appends only `Content-Length`.
    public static func data(_ data: Data, headers: HTTPFields) -> Script {
        .data(data, headers: HeaderPairs(headers))
    }

    /// Returns a script that responds with a redirect and an empty body.
    ///
    /// - Parameters:
    ///   - status: The status, such as `.found`; its reason phrase is ignored.
    ///   - location: The value of `Location`, sent unchanged: a URL, relative or absolute, or anything else.
    public static func redirect(_ status: HTTPResponse.Status, to location: String) -> Script {
        .redirect(status.code, to: location)
    }
}

extension MockResponse {
    /// Returns a response without a body, with header fields such as `["Retry-After": "5"]`, to which none are added.
    ///
    /// Fields whose names are not tokens (RFC 9110 §5.6.2) are omitted. Invalid bytes of values (RFC 9110 §5.5) are
    /// replaced by spaces, and surrounding spaces and tabs are removed.
    public static func status(_ status: HTTPResponse.Status, headers: HeaderPairs) -> MockResponse {
        .status(status, headers: HTTPFields(lenient: headers))
    }

    /// Returns a response with status 200, bytes in one chunk, and header fields such as
    /// `["Content-Type": "image/png"]`, to which none are added, not even `Content-Length`.
    ///
    /// Fields whose names are not tokens (RFC 9110 §5.6.2) are omitted. Invalid bytes of values (RFC 9110 §5.5) are
    /// replaced by spaces, and surrounding spaces and tabs are removed.
    public static func data(_ data: Data, headers: HeaderPairs) -> MockResponse {
        .data(data, headers: HTTPFields(lenient: headers))
    }
}

extension HeaderPairs {
    /// Creates fields from the fields of a `Request` or `MockResponse`, in their order and with the original case of
    /// their names.
    public init(_ fields: HTTPFields) {
        self.init(fields.map { HeaderPair($0.name.rawName, $0.value) })
    }
}
