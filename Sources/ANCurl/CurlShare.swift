// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl

/// One `CURLSH *`, owned: what the easy handles of an engine have in common besides their connections.
///
/// libcurl's share needs locks only where several threads use it; here it is the loop's thread alone. See
/// libcurl-share(3).
@safe
struct CurlShare: ~Copyable {
    private let raw: UnsafeMutableRawPointer

    /// Creates a share of the given kinds of data. See CURLSHOPT_SHARE(3).
    init(_ kinds: [curl_lock_data]) throws(TransportError) {
        guard let raw = unsafe curl_share_init() else {
            throw .internalInconsistency("curl_share_init failed.", FailureContext())
        }
        for kind in kinds { unsafe _ = ccurl_share(raw, kind) }
        unsafe self.raw = unsafe raw
    }

    /// No handle may use the share any more.
    deinit {
        unsafe _ = curl_share_cleanup(raw)
    }

    /// Makes a handle use what is shared.
    func attach(to handle: borrowing EasyHandle) throws(CurlFailure) {
        unsafe try handle.set(CURLOPT_SHARE, pointer: raw)
    }
}
