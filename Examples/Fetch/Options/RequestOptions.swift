// SPDX-License-Identifier: MIT

import ArgumentParser
import AsyncNetworking
import FoundationEssentials

/// The options for the request.
struct RequestOptions: ParsableArguments {
    @Option(
        name: [.customShort("X", allowingJoined: true), .customLong("request")],
        help: ArgumentHelp("The method; default: GET, or POST or PUT with a body.", valueName: "method"))
    var method: String?
    @Option(
        name: [.customShort("H"), .customLong("header")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A header field; may be repeated.", valueName: "name: value"))
    var headers: [String] = []
    @Option(
        name: [.customShort("u"), .customLong("user")], parsing: .unconditional,
        help: ArgumentHelp("Credentials for Basic authentication.", valueName: "user:password"))
    var user: String?
    @Flag(name: [.customShort("I"), .customLong("head")], help: "Send a HEAD request and print the response head.")
    var isHead = false
    @Flag(name: .customLong("no-follow"), help: "Do not follow redirects.")
    var staysPut = false
    @Flag(name: [.customShort("L"), .customLong("location")], help: .hidden)
    var follows = false

    init() {}

    /// Creates the request for a URL.
    ///
    /// - Throws: ``UsageError``, `SerializationError` for the URL, `TransportError` for a header field.
    func makeRequest(_ text: String, content: BodyContent) throws -> Request {
        let url = try content.url(for: URLResolver(base: nil).resolve(Self.hasScheme(text) ? text : "https://" + text))
        var request = Request(method: try makeMethod(content), url: url, headers: try makeHeaders(), body: content.body)
        for field in content.headers where !request.headers.contains(field.name) { request.headers.append(field) }
        return request
    }

    /// Whether a URL begins with a scheme; its path, query and fragment may contain other URLs.
    private static func hasScheme(_ text: String) -> Bool {
        let start = text.prefix { !"/?#".contains($0) }
        return start.hasSuffix(":") && text.dropFirst(start.count).hasPrefix("//")
    }

    private func makeMethod(_ content: BodyContent) throws -> HTTPRequest.Method {
        guard let method else { return isHead ? .head : content.method }
        guard let method = HTTPRequest.Method(method) else { throw UsageError("“\(method)” is not a method.") }
        guard !isHead || method == .head else { throw UsageError("-I implies HEAD and cannot be combined with -X.") }
        return method
    }

    private func makeHeaders() throws -> HTTPFields {
        var fields = try HTTPFields(
            validating: headers.map { line in
                guard let colon = line.firstIndex(of: ":") else {
                    throw UsageError("“\(line)” is not a header field: it has no colon.")
                }
                return (String(line[..<colon]), String(line[colon...].dropFirst().drop { $0 == " " || $0 == "\t" }))
            })
        if let user {
            guard user.contains(":") else { throw UsageError("-u requires user:password.") }
            fields.append(
                HTTPField(name: .authorization, value: "Basic " + Data(user.utf8).base64EncodedString()))
        }
        return fields
    }
}
