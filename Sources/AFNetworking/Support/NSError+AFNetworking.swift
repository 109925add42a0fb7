// SPDX-License-Identifier: MIT

extension NSError {
    /// An error of a request serializer, with the reason for people.
    static func requestSerialization(_ code: URLError.Code, reason: String, underlying: (any Error)? = nil) -> NSError {
        var userInfo: [String: Any] = [NSLocalizedFailureReasonErrorKey: reason]
        userInfo[NSUnderlyingErrorKey] = underlying
        return NSError(domain: AFURLRequestSerializationErrorDomain, code: code.rawValue, userInfo: userInfo)
    }

    /// The error with another one underneath: this one where it has one already, or where there is none to add; the other
    /// one where there is no error.
    static func combined(_ outer: NSError?, underlying inner: NSError?) -> NSError? {
        guard let outer else { return inner }
        guard let inner, outer.userInfo[NSUnderlyingErrorKey] == nil else { return outer }
        var userInfo = outer.userInfo
        userInfo[NSUnderlyingErrorKey] = inner
        return NSError(domain: outer.domain, code: outer.code, userInfo: userInfo)
    }

    /// The error with the request that it is about in its user info, unless there is one.
    ///
    /// - Parameter domain: Errors of other domains stay as they are, for they may be a program's own; `nil` for none.
    func about(_ request: URLRequest, inDomain domain: String? = nil) -> NSError {
        guard domain == nil || domain == self.domain else { return self }
        return adding([AFNetworkingOperationFailingURLRequestErrorKey: request])
    }

    /// The error with more in its user info; what is there stays.
    func adding(_ facts: [String: Any]) -> NSError {
        NSError(domain: domain, code: code, userInfo: userInfo.merging(facts) { own, _ in own })
    }

    /// Whether this error, or one underneath, has this domain and code.
    func contains(_ domain: String, _ code: URLError.Code) -> Bool {
        if self.domain == domain, self.code == code.rawValue { return true }
        return (userInfo[NSUnderlyingErrorKey] as? NSError)?.contains(domain, code) ?? false
    }
}
