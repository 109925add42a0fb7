// SPDX-License-Identifier: MIT

/// The options of an upload: whether it is resumed after an interruption, and by which protocol. See
/// ``SessionManager/upload(_:body:method:headers:timeout:options:as:)``.
public struct UploadOptions: Sendable {
    /// Whether an upload that is interrupted goes on where the server's bytes end; `false` by default.
    ///
    /// The server must support the tus protocol 1.0 or resumable uploads for HTTP
    /// (draft-ietf-httpbis-resumable-upload). Of a body that is not replayable or whose length is unknown, nothing can
    /// be sent again; the upload then fails with ``SessionError/UploadFailure/bodyNotResumable``.
    public var isResumable = false
    /// Whether the upload can go on after the end of the process; `false` by default. It applies to a body that is a
    /// regular file, and implies ``isResumable``.
    ///
    /// A record of the upload is kept beside the file, under its name with a suffix that depends on the method and the URL and
    /// ends with `.upload`. It has mode 0600, and contains the URL of the upload on the server, which may be secret. The
    /// next durable upload of the same file to the same URL continues there, unless the file was changed, replaced or
    /// moved. The record is removed when the upload is complete, or the server has rejected it. While it runs, another
    /// durable upload of the file to that URL fails with ``SessionError/FileFailure/Reason/inUse``.
    public var isDurable = false
    /// The protocol; `nil`, the default, asks the server by an `OPTIONS` request first.
    public var uploadProtocol: UploadProtocol?
    /// The maximum number of bytes in one request; `nil`, the default, sends all bytes in one request unless the server
    /// has announced a limit. A value below 1 counts as 1. Unless ``uploadProtocol`` is set, the first request has all
    /// bytes if it is not known that the server follows the draft: another one would take a part for the whole.
    ///
    /// A body that a closure or a sequence generates is generated from its beginning for each part, and its first bytes are
    /// dropped: with n parts, it is generated n / 2 times. Write one that costs more than its transfer to a file first.
    public var partSize: Int64?
    /// Whether each request has the digest of its content, which the server verifies; `false` by default.
    ///
    /// The bytes are then read twice, in parts of at most 8 MiB unless ``partSize`` is set. With
    /// ``UploadProtocol/ietf`` the digest is a `Content-Digest` (RFC 9530), which a server may ignore; with
    /// ``UploadProtocol/tus`` an `Upload-Checksum`, if the server has the extension.
    public var verifiesParts = false

    /// Creates the default options: an upload in one request, which fails if it is interrupted.
    public init() {}

    /// The options of an upload that goes on after an interruption, as long as the process lives.
    public static let resumable = UploadOptions().with { $0.isResumable = true }

    /// The options of an upload that goes on after an interruption, also in a later process.
    public static let durable = UploadOptions().with { $0.isDurable = true }

    /// Returns a copy of the options modified by a closure.
    ///
    /// - Parameter change: Modifies the copy.
    public func with(_ change: (inout UploadOptions) -> Void) -> UploadOptions {
        var copy = self
        change(&copy)
        return copy
    }
}

/// A protocol for resumable uploads.
public enum UploadProtocol: String, Codable, Hashable, Sendable {
    /// The tus protocol 1.0 with the extensions creation, expiration, checksum and termination. The URL of the request
    /// is that of the creation; the upload's response is the last one of the protocol, mostly a 204 without content.
    case tus
    /// Resumable uploads for HTTP (draft-ietf-httpbis-resumable-upload, interop version 8). A server without support
    /// receives an ordinary request. The response is that of the resource to which the request was sent.
    case ietf
}
