// SPDX-License-Identifier: MIT

/// How requests to Amazon's services, and to others that do it like them, are signed: Signature Version 4.
///
/// The signature covers the method, the URL, all header fields of the request and the body. Bytes and files are hashed
/// before they are sent; a body of a stream can be signed for S3 alone, as `UNSIGNED-PAYLOAD` and over https, or with an
/// `x-amz-content-sha256` field of the request's own. Its description never shows the secrets.
public struct AWSSignature: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The access key's identifier.
    public var accessKeyID: String
    /// The secret access key.
    public var secretAccessKey: String
    /// The token that belongs to temporary keys; sent as `X-Amz-Security-Token`.
    public var sessionToken: String?
    /// The region, such as `eu-central-1`.
    public var region: String
    /// The service, such as `s3`.
    public var service: String
    /// The hosts whose requests are signed; those of Amazon by default.
    public var hosts: [HostPattern] = ["*.amazonaws.com"]

    /// Creates a signature.
    public init(
        accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, region: String, service: String
    ) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
        self.region = region
        self.service = service
    }

    /// The key's identifier, the region and the service.
    public var description: String { "AWSSignature(\(accessKeyID), \(region), \(service))" }
    /// The same as the description.
    public var debugDescription: String { description }
    /// A mirror without secrets.
    public var customMirror: Mirror { Mirror(self, children: ["source": description]) }
}
