// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl

/// An owned `CURLSH *`, the data shared by an engine's easy handles besides connections.
///
/// libcurl's share requires locks only if several threads use it; here only the loop's thread does. See
/// libcurl-share(3).
@safe
struct CurlShare: ~Copyable {
    private let raw: UnsafeMutableRawPointer

    /// Creates a share of the given kinds of data. See CURLSHOPT_SHARE(3).
    init(_ kinds: [curl_lock_data]) throws(TransportError) {
        guard let raw = unsafe curl_share_init() else {
            throw TransportError(.internalInconsistency("curl_share_init failed."))
        }
        for kind in kinds { unsafe _ = ccurl_share(raw, kind) }
        unsafe self.raw = unsafe raw
    }

    /// Frees the share, which no handle may use any more.
    deinit {
        unsafe _ = curl_share_cleanup(raw)
    }

    /// Attaches a handle to the share.
    func attach(to handle: borrowing EasyHandle) throws(CurlFailure) {
        unsafe try handle.set(CURLOPT_SHARE, pointer: raw)
    }
}
