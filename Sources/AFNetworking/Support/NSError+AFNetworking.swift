// SPDX-License-Identifier: MIT

import AsyncNetworking

extension NSError {
    /// Returns an error of a request serializer, with a human-readable failure reason.
    static func requestSerialization(_ code: URLError.Code, reason: String, underlying: (any Error)? = nil) -> NSError {
        var userInfo: [String: Any] = [NSLocalizedFailureReasonErrorKey: reason]
        userInfo[NSUnderlyingErrorKey] = underlying
        return NSError(domain: AFURLRequestSerializationErrorDomain, code: code.rawValue, userInfo: userInfo)
    }

    /// Returns the error of a request serializer for an error of the core's.
    static func requestSerialization(_ error: SerializationError) -> NSError {
        requestSerialization(.cannotDecodeContentData, reason: "\(error)", underlying: error)
    }

    /// Returns the outer error with the inner one as its underlying error. Returns the outer error unchanged if it
    /// already has an underlying error or `inner` is `nil`, and the inner error if `outer` is `nil`.
    static func combined(_ outer: NSError?, underlying inner: NSError?) -> NSError? {
        guard let outer else { return inner }
        guard let inner, outer.userInfo[NSUnderlyingErrorKey] == nil else { return outer }
        var userInfo = outer.userInfo
        userInfo[NSUnderlyingErrorKey] = inner
        return NSError(domain: outer.domain, code: outer.code, userInfo: userInfo)
    }

    /// Returns the error with a request added to its user info, unless it already has one.
    ///
    /// - Parameter domain: The domain of the errors to change. Errors of other domains, which may be the program's own,
    ///   are returned unchanged. `nil` for all domains.
    func about(_ request: URLRequest, inDomain domain: String? = nil) -> NSError {
        guard domain == nil || domain == self.domain else { return self }
        return adding([AFNetworkingOperationFailingURLRequestErrorKey: request])
    }

    /// Returns the error with entries added to its user info. Existing entries are kept.
    func adding(_ entries: [String: Any]) -> NSError {
        NSError(domain: domain, code: code, userInfo: userInfo.merging(entries) { own, _ in own })
    }

    /// Whether this error, or an underlying one at any depth, has the given domain and code.
    func contains(_ domain: String, _ code: URLError.Code) -> Bool {
        if self.domain == domain, self.code == code.rawValue { return true }
        return (userInfo[NSUnderlyingErrorKey] as? NSError)?.contains(domain, code) ?? false
    }
}
