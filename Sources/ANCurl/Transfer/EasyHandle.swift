// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import FoundationEssentials
import Glibc

/// The failure of a call to libcurl.
struct CurlFailure: Error {
    let code: CURLcode
    /// The rejected option; `nil` if the call did not set one.
    var option: CURLoption?

    /// The failure as a transport error: the program requested something that this version of libcurl does not support.
    var transportError: TransportError {
        let words = unsafe String(cString: curl_easy_strerror(code))
        if let option {
            return TransportError(.invalidRequest(.option("libcurl's option \(option.rawValue) was refused: \(words)")))
        }
        var context = FailureContext()
        context.curlCode = Int32(code.rawValue)
        return TransportError(.internalInconsistency(words), context: context)
    }
}

/// An owned `CURL *`, freed on the thread that created it. See libcurl-easy(3).
@safe
struct EasyHandle: ~Copyable {
    /// The pointer, for passing to libcurl.
    let raw: UnsafeMutableRawPointer

    init() throws(CurlFailure) {
        guard let raw = unsafe curl_easy_init() else { throw CurlFailure(code: CURLE_OUT_OF_MEMORY) }
        unsafe self.raw = unsafe raw
    }

    deinit {
        unsafe curl_easy_cleanup(raw)
    }

    // MARK: Options

    /// The maximum size in bytes of a request's head, somewhat less than libcurl's limit of 1 MiB for the complete head.
    static let maximumHeadSize = 1_000_000

    func set(_ option: CURLoption, _ value: Int) throws(CurlFailure) {
        try check(unsafe ccurl_set_long(raw, option, value), option)
    }

    func set(_ option: CURLoption, _ value: Bool) throws(CurlFailure) {
        try set(option, value ? 1 : 0)
    }

    func set(_ option: CURLoption, offset: Int64) throws(CurlFailure) {
        try check(unsafe ccurl_set_offset(raw, option, curl_off_t(offset)), option)
    }

    /// Sets a string, which libcurl copies; `nil` restores the default. One with a NUL is refused: libcurl would cut it.
    func set(_ option: CURLoption, _ value: String?) throws(CurlFailure) {
        guard let value else { return try check(unsafe ccurl_set_string(raw, option, nil), option) }
        // Unlike an implicit conversion, this does not copy the string.
        let code = unsafe value.withCString { text in
            unsafe strlen(text) == value.utf8.count
                ? ccurl_set_string(raw, option, text) : CURLE_BAD_FUNCTION_ARGUMENT
        }
        try check(code, option)
    }

    func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) throws(CurlFailure) {
        try check(unsafe ccurl_set_pointer(raw, option, pointer), option)
    }

    /// Sets a list, which must remain valid as long as the handle uses it.
    func set(_ option: CURLoption, list: UnsafeMutablePointer<curl_slist>?) throws(CurlFailure) {
        try check(unsafe ccurl_set_list(raw, option, list), option)
    }

    /// Sets a blob, which libcurl copies; `nil` removes it.
    func set(_ option: CURLoption, blob: Data?) throws(CurlFailure) {
        guard let blob else { return unsafe try set(option, pointer: nil) }
        let code = unsafe blob.withUnsafeBytes { bytes in
            unsafe ccurl_set_blob(raw, option, bytes.baseAddress, bytes.count)
        }
        try check(code, option)
    }

    func check(_ code: CURLcode, _ option: CURLoption) throws(CurlFailure) {
        guard code == CURLE_OK else { throw CurlFailure(code: code, option: option) }
    }

    /// Ends a pause in receiving, sending or both; a direction that is not resumed is paused. See curl_easy_pause(3).
    @discardableResult
    func resume(receiving: Bool, sending: Bool) -> CURLcode {
        let pauses = (receiving ? 0 : CURLPAUSE_RECV) | (sending ? 0 : CURLPAUSE_SEND)
        return unsafe curl_easy_pause(raw, pauses)
    }

    // MARK: Information

    func long(_ info: CURLINFO) -> Int {
        var value = 0
        unsafe _ = ccurl_get_long(raw, info, &value)
        return value
    }

    func offset(_ info: CURLINFO) -> Int64 {
        var value: curl_off_t = 0
        unsafe _ = ccurl_get_offset(raw, info, &value)
        return Int64(value)
    }

    func string(_ info: CURLINFO) -> String {
        var value: UnsafePointer<CChar>?
        unsafe _ = ccurl_get_string(raw, info, &value)
        return unsafe value.map { unsafe String(cString: $0) } ?? ""
    }
}
