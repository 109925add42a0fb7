// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The target of a request: a path or URL as a string, or a `URL`.
///
/// Other types can conform, for example an enumeration of the endpoints of a service:
///
/// ```swift
/// enum Endpoint: RequestTarget {
///     case user(Int)
///
///     func resolved(by resolver: URLResolver) throws(SerializationError) -> URL {
///         switch self {
///         case .user(let id): try resolver.resolve("users/\(id)")
///         }
///     }
/// }
/// ```
public protocol RequestTarget {
    /// Returns the absolute `http` or `https` URL of the target.
    ///
    /// - Parameter resolver: Resolves strings against the base URL of the session.
    /// - Throws: ``SerializationError/url(_:)`` if there is no such URL.
    func resolved(by resolver: URLResolver) throws(SerializationError) -> URL
}

extension String: RequestTarget {
    /// Returns the URL that the string denotes relative to the base URL of the session; see ``URLResolver`` for the
    /// rules.
    ///
    /// - Parameter resolver: The resolver with the base URL.
    /// - Throws: ``SerializationError/url(_:)`` if the string is not a valid URL, its scheme is neither `http` nor
    ///   `https`, or it is relative and there is no base.
    public func resolved(by resolver: URLResolver) throws(SerializationError) -> URL {
        try resolver.resolve(self)
    }
}

extension URL: RequestTarget {
    /// Returns an absolute URL unchanged; resolves a relative one like its string.
    ///
    /// - Parameter resolver: The resolver with the base URL for a relative URL.
    /// - Throws: ``SerializationError/url(_:)`` unless the scheme is `http` or `https` and there is a host.
    public func resolved(by resolver: URLResolver) throws(SerializationError) -> URL {
        guard scheme != nil else { return try resolver.resolve(relativeString) }
        return try URLResolver.checked(absoluteURL, from: absoluteString)
    }
}
