// SPDX-License-Identifier: MIT

/// Credentials and scope for signing requests with AWS Signature Version 4, for Amazon's and compatible services.
///
/// A session that has the value in its `AuthenticationPolicy.signatures` signs the requests to its ``hosts``, except
/// those with an `Authorization` field. WebSocket connections cannot be signed: those to the ``hosts`` without such a
/// field fail with ``TransportError/Reason/invalidRequest(_:)``.
///
/// The signature covers the method, the URL, the body, the time, and the header fields except `Content-Length`,
/// `Transfer-Encoding` and stored cookies. A `Cookie` field of the request is covered only if cookies are not handled;
/// see ``TransferOptions/handlesCookies``. The path and the query are sent in the form that is signed: reserved
/// characters are percent-encoded, and the parameters are sorted, each with `=`. Compressed responses are not requested unless the request has an `Accept-Encoding` field.
///
/// Bytes and files are hashed before they are sent, so a file is read twice. A streamed body can be signed only for the
/// service `s3` over https, as `UNSIGNED-PAYLOAD`, or with an `x-amz-content-sha256` field set by the request;
/// otherwise the request fails with ``TransportError/Reason/invalidRequest(_:)``.
///
/// The description never contains the secrets.
public struct AWSSignature: Hashable, Sendable, CustomStringConvertible {
    /// The identifier of the access key.
    package let accessKeyID: String
    /// The secret access key that belongs to `accessKeyID`.
    package var secretAccessKey: String { secretKey.value }
    private let secretKey: Secret<String>
    /// The session token of temporary credentials, sent as `X-Amz-Security-Token`; `nil` for permanent ones.
    package var sessionToken: String? {
        get { secretToken.value }
        set { secretToken.value = newValue }
    }
    private var secretToken: Secret<String?>
    /// The region, such as `eu-central-1`.
    package let region: String
    /// The service, such as `s3`.
    package let service: String
    /// The hosts to which requests are signed, over http and https and on any port; `*.amazonaws.com` by default, which
    /// covers neither partitions such as `*.amazonaws.com.cn` nor compatible services. If empty, no request is signed.
    ///
    /// An invalid literal fails a session's requests to any host with ``TransportError/Reason/invalidRequest(_:)``,
    /// except those that an earlier pattern matches, and those with an `Authorization` field.
    public var hosts: [HostPattern] = ["*.amazonaws.com"]

    /// Creates the credentials for signing requests to one service in one region.
    ///
    /// ``hosts`` is `*.amazonaws.com`; set it for compatible services and for partitions such as `*.amazonaws.com.cn`.
    /// A control character in one of the values fails the requests with ``TransportError/Reason/invalidRequest(_:)``. If
    /// the values are wrong otherwise, the server refuses the requests.
    ///
    /// - Parameters:
    ///   - accessKeyID: The identifier of the access key.
    ///   - secretAccessKey: The secret access key.
    ///   - sessionToken: The session token of temporary credentials, sent as `X-Amz-Security-Token`; `nil`, the default,
    ///     for permanent ones.
    ///   - region: The region, such as `eu-central-1`; it must not be empty.
    ///   - service: The service, such as `s3`, in lower case; it must not be empty.
    public init(
        accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, region: String, service: String
    ) {
        self.accessKeyID = accessKeyID
        secretKey = Secret(secretAccessKey)
        secretToken = Secret(sessionToken)
        self.region = region
        self.service = service
    }

    /// A description with the access key's identifier, the region and the service, without secrets.
    public var description: String { "AWSSignature(\(accessKeyID), \(region), \(service))" }
}
