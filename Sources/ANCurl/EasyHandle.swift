// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import FoundationEssentials

/// A failed call of libcurl's.
struct CurlFailure: Error {
    let code: CURLcode
    /// The option that was refused, when it was an option.
    var option: CURLoption?

    /// The failure as an error of the transport: the program asked for something that this libcurl does not take.
    var transportError: TransportError {
        let words = unsafe String(cString: curl_easy_strerror(code))
        if let option { return .invalidRequest(.option("libcurl's option \(option.rawValue) was refused: \(words)")) }
        var facts = FailureContext()
        facts.curlCode = Int32(code.rawValue)
        return .internalInconsistency(words, facts)
    }
}

/// One `CURL *`, owned: freed once, on the thread that made it. See libcurl-easy(3).
@safe
struct EasyHandle: ~Copyable {
    /// The handle itself, for calls that lend it to libcurl.
    let raw: UnsafeMutableRawPointer

    init() throws(CurlFailure) {
        guard let raw = unsafe curl_easy_init() else { throw CurlFailure(code: CURLE_OUT_OF_MEMORY) }
        unsafe self.raw = unsafe raw
    }

    deinit {
        unsafe curl_easy_cleanup(raw)
    }

    // MARK: Options

    func set(_ option: CURLoption, _ value: Int) throws(CurlFailure) {
        try check(unsafe ccurl_set_long(raw, option, value), option)
    }

    func set(_ option: CURLoption, _ value: Bool) throws(CurlFailure) {
        try set(option, value ? 1 : 0)
    }

    func set(_ option: CURLoption, offset: Int64) throws(CurlFailure) {
        try check(unsafe ccurl_set_offset(raw, option, curl_off_t(offset)), option)
    }

    /// Sets a string, which libcurl copies; nil brings its default back.
    func set(_ option: CURLoption, _ value: String?) throws(CurlFailure) {
        if let value {
            // Unlike an implicit conversion, this does not copy.
            try check(unsafe value.withCString { unsafe ccurl_set_string(raw, option, $0) }, option)
        } else {
            try check(unsafe ccurl_set_string(raw, option, nil), option)
        }
    }

    func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) throws(CurlFailure) {
        try check(unsafe ccurl_set_pointer(raw, option, pointer), option)
    }

    /// Sets a list, which must live as long as the handle uses it.
    func set(_ option: CURLoption, list: UnsafeMutablePointer<curl_slist>?) throws(CurlFailure) {
        try check(unsafe ccurl_set_list(raw, option, list), option)
    }

    /// Sets bytes, which libcurl copies; nil takes them away.
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

    /// Ends a pause, of both directions or of one. See curl_easy_pause(3).
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
