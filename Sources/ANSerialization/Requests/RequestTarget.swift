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
    /// A session calls it in the task that creates the request, once for each request.
    ///
    /// - Parameter resolver: Resolves strings against the base URL of the session.
    /// - Throws: ``SerializationError/url(_:)`` if the target has no absolute `http` or `https` URL. It reaches the
    ///   caller of a session as `SessionError.serialization`.
    func resolved(by resolver: URLResolver) throws(SerializationError) -> URL
}

extension String: RequestTarget {
    /// Returns the URL that the string denotes relative to the base URL of the session; see ``URLResolver`` for the
    /// rules.
    ///
    /// - Parameter resolver: The resolver with the base URL.
    /// - Throws: ``SerializationError/url(_:)`` if the string is not a valid URL, its scheme is neither `http` nor
    ///   `https`, its host is missing or not ASCII, or it is relative and there is no base.
    public func resolved(by resolver: URLResolver) throws(SerializationError) -> URL {
        try resolver.resolve(self)
    }
}

extension URL: RequestTarget {
    /// Returns an absolute URL unchanged, and a relative one whose own base is absolute resolved against that base;
    /// resolves any other relative one by the resolver, like the string of its relative part.
    ///
    /// - Parameter resolver: The resolver for a relative URL without an absolute base of its own.
    /// - Throws: ``SerializationError/url(_:)`` unless the scheme is `http` or `https` and there is a host in ASCII,
    ///   and for a relative URL without any base.
    public func resolved(by resolver: URLResolver) throws(SerializationError) -> URL {
        guard scheme != nil else { return try resolver.resolve(relativeString) }
        return try URLResolver.checked(absoluteURL, from: absoluteString)
    }
}
