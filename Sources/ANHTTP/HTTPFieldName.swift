// SPDX-License-Identifier: MIT

public import HTTPTypes

// The texts are valid names.
extension HTTPField.Name {
    /// `Content-Digest`, the digest of the content of a message (RFC 9530 §2). ``ContentDigest/fieldValue`` returns its
    /// value.
    public static let contentDigest = HTTPField.Name("Content-Digest") ?? .ifNoneMatch
    /// `Idempotency-Key`, a key by which a server recognizes a request that is sent again
    /// (draft-ietf-httpapi-idempotency-key-header). By default a `RetryPolicy` also retries a POST that has the field.
    /// The library never adds it.
    public static let idempotencyKey = HTTPField.Name("Idempotency-Key") ?? .ifNoneMatch
    /// `Last-Event-ID`, the ID of the event after which an event stream continues (WHATWG HTML, “The Last-Event-ID
    /// header”). A session's event source sends the field of its request with the first connection, and the ID of the
    /// last event, if any, when it reconnects.
    public static let lastEventID = HTTPField.Name("Last-Event-ID") ?? .ifNoneMatch
}
