// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import Testing

@Suite struct FileMediaTypeTests {
    @Test(arguments: [
        ("a.cer", "application/x-x509-ca-cert"), ("a.JSON", "application/json"), ("a.tar.gz", "application/gzip"),
        ("a.unknown", "application/octet-stream"), ("png", "application/octet-stream"),
        ("a.", "application/octet-stream"), ("", "application/octet-stream"), (".png", "image/png"),
    ])
    func `the media type is determined by the extension, ignoring case`(name: String, mediaType: String) {
        #expect(FileMediaType.ofFile(named: name) == mediaType)
    }
}
