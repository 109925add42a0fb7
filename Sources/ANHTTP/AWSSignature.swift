// SPDX-License-Identifier: MIT

/// Credentials and scope for signing requests with AWS Signature Version 4, for Amazon's and compatible services.
///
/// The signature covers the method, the URL, all header fields of the request and the body. Bytes and files are hashed
/// before they are sent. A streamed body can be signed only for S3 over https, as `UNSIGNED-PAYLOAD`, or with an
/// `x-amz-content-sha256` field set by the request; otherwise the request fails with
/// ``TransportError/Reason/invalidRequest(_:)``. Signing requires libcurl 7.87 or later. The description never contains
/// the secrets.
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
    /// The hosts whose requests are signed; `*.amazonaws.com` by default, which covers neither partitions such as
    /// `*.amazonaws.com.cn` nor compatible services.
    public var hosts: [HostPattern] = ["*.amazonaws.com"]

    /// Creates the credentials for signing requests to one service in one region.
    ///
    /// ``hosts`` is `*.amazonaws.com`; set it for compatible services and for partitions such as `*.amazonaws.com.cn`.
    ///
    /// - Parameters:
    ///   - accessKeyID: The identifier of the access key.
    ///   - secretAccessKey: The secret access key.
    ///   - sessionToken: The session token of temporary credentials; `nil`, the default, for permanent ones.
    ///   - region: The region, such as `eu-central-1`.
    ///   - service: The service, such as `s3`.
    public init(
        accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, region: String, service: String
    ) {
        self.accessKeyID = accessKeyID
        secretKey = Secret(secretAccessKey)
        secretToken = Secret(sessionToken)
        self.region = region
        self.service = service
    }

    /// A description with the key's identifier, the region and the service, without secrets.
    public var description: String { "AWSSignature(\(accessKeyID), \(region), \(service))" }
}
