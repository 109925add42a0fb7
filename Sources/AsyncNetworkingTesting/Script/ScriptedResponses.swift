// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials
public import HTTPTypes

// The responses of a server in the notation of a mock, and those of a mock in the notation of a server: statuses are
// numbers or names, and header fields have names as text or as values.

extension Script {
    /// Returns a script that responds with a status such as `.notFound`, and an empty body.
    public static func status(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) -> Script {
        .status(status.code, headers: HeaderPairs(headers))
    }

    /// Returns a script that responds with JSON text and a status such as `.created`.
    public static func json(_ text: String, status: HTTPResponse.Status) -> Script {
        .json(text, status: status.code)
    }

    /// Returns a script that responds with plain text and a status such as `.created`.
    public static func text(_ text: String, status: HTTPResponse.Status) -> Script {
        .text(text, status: status.code)
    }

    /// Returns a script that responds with status 200, bytes, and header fields such as `[.contentType: "image/png"]`.
    public static func data(_ data: Data, headers: HTTPFields) -> Script {
        .data(data, headers: HeaderPairs(headers))
    }

    /// Returns a script that responds with a redirect such as `.found`, and an empty body.
    public static func redirect(_ status: HTTPResponse.Status, to location: String) -> Script {
        .redirect(status.code, to: location)
    }
}

extension MockResponse {
    /// Returns a response without a body, with header fields such as `["Retry-After": "5"]`.
    public static func status(_ status: HTTPResponse.Status, headers: HeaderPairs) -> MockResponse {
        .status(status, headers: HTTPFields(lenient: headers))
    }

    /// Returns a response with status 200, bytes, and header fields such as `["Content-Type": "image/png"]`.
    public static func data(_ data: Data, headers: HeaderPairs) -> MockResponse {
        .data(data, headers: HTTPFields(lenient: headers))
    }
}

extension HeaderPairs {
    /// Creates fields with the names and values of others, in their order.
    public init(_ fields: HTTPFields) {
        self.init(fields.map { HeaderPair($0.name.rawName, $0.value) })
    }
}
