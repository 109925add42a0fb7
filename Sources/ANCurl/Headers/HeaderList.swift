// SPDX-License-Identifier: MIT

package import ANHTTP
package import CCurl
import FoundationEssentials
import HTTPTypes

/// The lists of strings that one request passes to libcurl, which reads them during the request.
///
/// `struct curl_slist` is public, so all nodes and their text are stored in one block instead of two allocations for
/// each field. See CURLOPT_HTTPHEADER(3).
@safe
package struct HeaderList: ~Copyable {
    /// The memory of the nodes, followed by that of the text. An object's memory comes from malloc(3); `allocate` would
    /// call posix_memalign(3), which takes ten times as long.
    private let block: ManagedBuffer<Void, UInt>
    private let nodes: UnsafeMutableBufferPointer<curl_slist>
    private let text: UnsafeMutableRawBufferPointer
    /// The size of all lines in bytes.
    private(set) var textCount = 0
    /// The size of the longest line in bytes.
    private(set) var longestLine = 0
    private var nodeCount = 0
    private var proxyStart = 0
    private var overrideStart = 0
    /// The value of the request's own `Cookie` fields, joined, if they were omitted from the list; `nil` if there are
    /// none.
    package private(set) var cookies: String?

    /// The first header field; `nil` for an empty list.
    package var first: UnsafeMutablePointer<curl_slist>? {
        unsafe start(of: 0..<proxyStart)
    }

    /// The first header field for an HTTP proxy; `nil` for an empty list.
    package var firstForProxy: UnsafeMutablePointer<curl_slist>? {
        unsafe start(of: proxyStart..<overrideStart)
    }

    /// The first host override; `nil` for an empty list.
    package var firstOverride: UnsafeMutablePointer<curl_slist>? {
        unsafe start(of: overrideStart..<nodeCount)
    }

    private func start(of list: Range<Int>) -> UnsafeMutablePointer<curl_slist>? {
        unsafe list.isEmpty ? nil : nodes.baseAddress.map { unsafe $0 + list.lowerBound }
    }

    /// Creates the lists of a request.
    ///
    /// - Parameters:
    ///   - declaresEmptyBody: Whether the length of an empty body is declared here, and not by libcurl.
    ///   - leavesOutCookies: Whether the request's cookies are stored in ``cookies`` instead, for libcurl to add to
    ///     those of the jar.
    package init(
        _ request: borrowing Request, _ options: SharedTransferOptions, _ upload: Upload, sendsBody: Bool,
        declaresEmptyBody: Bool = false, leavesOutCookies: Bool = false
    ) throws(TransportError) {
        let overrides = options.value.connection.hostOverrides
        let size = Self.size(request.headers, overrides)
        let nodesSize = unsafe size.lines * MemoryLayout<curl_slist>.stride
        block = .create(minimumCapacity: (nodesSize + size.bytes) / MemoryLayout<UInt>.size + 1) { _ in }
        let start = unsafe block.withUnsafeMutablePointerToElements { UnsafeMutableRawPointer($0) }
        unsafe nodes = UnsafeMutableBufferPointer(
            start: start.bindMemory(to: curl_slist.self, capacity: size.lines), count: size.lines)
        unsafe text = UnsafeMutableRawBufferPointer(start: start + nodesSize, count: size.bytes)
        var namesExpect = false
        var namesCoding = false
        var namesRange = false
        for field in request.headers where field.name != .proxyAuthorization {
            if field.name == .expect { namesExpect = true }
            if field.name == .acceptEncoding { namesCoding = true }
            if field.name == .range { namesRange = true }
            guard try field.isSent(withBodyOf: upload.length) else { continue }
            if leavesOutCookies, field.name == .cookie {
                cookies = cookies.map { "\($0); \(field.value)" } ?? field.value
                continue
            }
            append(field)
        }
        // Ranges are those of the encoded representation, of which a part cannot be decoded (RFC 9110 §14.2).
        if options.value.decodesContent, !namesCoding {
            append(namesRange ? "Accept-Encoding: identity" : Self.acceptEncoding)
        }
        // Not without content (RFC 9110 §10.1.1).
        let expectsContinue = options.value.expectContinueTimeout != nil && upload.length != 0
        // libcurl would ask for a 100 itself before a large body.
        if sendsBody, !namesExpect { append(expectsContinue ? "Expect: 100-continue" : "Expect:") }
        if declaresEmptyBody { append("Content-Length: 0") }
        proxyStart = nodeCount
        for field in request.headers where field.name == .proxyAuthorization { append(field) }
        overrideStart = nodeCount
        for override in overrides {
            let text = override.curlText
            guard !text.hasControlCharacters else {
                throw TransportError(.invalidRequest(.option("A host override contains a control character.")))
            }
            guard [override.port, override.addressPort].allSatisfy({ (1...65_535).contains($0) }) else {
                throw TransportError(.invalidRequest(.option("A port of a host override is not within 1 and 65535.")))
            }
            append(text)
        }
        link()
    }

    /// The reader's task decodes the codings: with CURLOPT_ACCEPT_ENCODING, libcurl would decode on the loop, accept a
    /// truncated body as complete, and let a small body grow to any size while its reader is paused.
    private static let acceptEncoding = "Accept-Encoding: \(ContentDecoder.supportedCodings)"

    private mutating func append(_ field: HTTPField) {
        unsafe field.withUnsafeBytesOfValue { value in
            // libcurl interprets `Name:`, with or without whitespace, as a request to omit the field; `Name;` is an
            // empty field.
            let isBlank = unsafe value.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            unsafe append(field.name.rawName, isBlank ? ";" : ": ", isBlank ? .init(start: nil, count: 0) : value)
        }
    }

    private mutating func append(_ line: String) {
        unsafe append("", line, UnsafeBufferPointer(start: nil, count: 0))
    }

    private mutating func append(_ name: String, _ separator: String, _ value: UnsafeBufferPointer<UInt8>) {
        unsafe nodes[nodeCount] = curl_slist()
        unsafe nodes[nodeCount].data = text.baseAddress.map {
            unsafe ($0 + textCount).assumingMemoryBound(to: CChar.self)
        }
        nodeCount += 1
        let start = textCount
        write(name)
        write(separator)
        unsafe write(UnsafeRawBufferPointer(value))
        longestLine = max(longestLine, textCount - start)
        unsafe text[textCount] = 0
        textCount += 1
    }

    private mutating func write(_ string: String) {
        var string = string
        string.withUTF8 { unsafe write(UnsafeRawBufferPointer($0)) }
    }

    private mutating func write(_ bytes: UnsafeRawBufferPointer) {
        unsafe UnsafeMutableRawBufferPointer(rebasing: text[textCount...]).copyMemory(from: bytes)
        textCount += bytes.count
    }

    /// Returns the size of all lines, which are allocated at once because the nodes point into the text.
    private static func size(
        _ headers: HTTPFields, _ overrides: [ConnectionOptions.HostOverride]
    ) -> (bytes: Int, lines: Int) {
        var bytes = 64 + acceptEncoding.utf8.count
        for field in headers {
            bytes += field.name.rawName.utf8.count + 3 + (unsafe field.withUnsafeBytesOfValue { $0.count })
        }
        for override in overrides { bytes += override.curlText.utf8.count + 1 }
        return (bytes, headers.count + overrides.count + 2)
    }

    private mutating func link() {
        guard let start = unsafe nodes.baseAddress else { return }
        for next in 0..<nodeCount where next != 0 && next != proxyStart && next != overrideStart {
            unsafe nodes[next - 1].next = unsafe start + next
        }
    }
}

extension ConnectionOptions.HostOverride {
    /// The form required by CURLOPT_CONNECT_TO(3).
    fileprivate var curlText: String {
        func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
        // Until 8.16, libcurl frees an address that it converts itself twice.
        let address = address.utf8.allSatisfy { $0 < 0x80 } ? address : HostName(address).ascii?.text ?? address
        return "\(bracketed(host)):\(port):\(bracketed(address)):\(addressPort)"
    }
}
