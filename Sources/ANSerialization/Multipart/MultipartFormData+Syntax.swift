// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

extension MultipartFormData {
    /// The multipart subtype: the relation between the parts of a body.
    ///
    /// The functions that append a part with a name write `Content-Disposition: form-data` for every subtype; for other
    /// subtypes than ``formData`` append parts with header fields of their own.
    @nonexhaustive
    public enum Subtype: Hashable, Sendable {
        /// `multipart/form-data`, the default: fields of a form, each with a name (RFC 7578).
        case formData
        /// `multipart/mixed`: independent parts in a meaningful order, with their own header fields (RFC 2046 §5.1.3).
        case mixed
        /// `multipart/related`: parts of a compound object (RFC 2387).
        ///
        /// `type` is the media type of the root part. `start` is the `Content-ID` of the root part, including its angle
        /// brackets; `nil`, the default, for the first part. Both must be printable ASCII, or
        /// ``MultipartFormData/init(subtype:boundary:)`` throws ``SerializationError/multipart(_:)``.
        case related(type: String, start: String? = nil)

        var name: String {
            switch self {
            case .formData: "form-data"
            case .mixed: "mixed"
            case .related: "related"
            }
        }

        /// The parameters of `Content-Type` after the boundary.
        var parameters: [(name: String, value: String)] {
            switch self {
            case .formData, .mixed: []
            case .related(let type, let start): [("type", type)] + (start.map { [("start", $0)] } ?? [])
            }
        }
    }

    static func randomBoundary() -> String {
        let digits = String(UInt64.systemRandom(in: .min ... .max), radix: 16, uppercase: true)
        return "Boundary+" + String(repeating: "0", count: max(16 - digits.count, 0)) + digits
    }

    static func isBoundaryByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "'()+_,-./:=?".utf8.contains(byte)
        }
    }

    /// Returns a quoted string (RFC 9110 §5.6.4).
    static func quoted(_ text: String) -> String {
        var result = "\""
        for character in text {
            if character == "\"" || character == "\\" { result += "\\" }
            result.append(character)
        }
        return result + "\""
    }

    /// The closing delimiter. See RFC 2046 §5.1.1.
    var lastLine: Data { Data("\r\n--\(boundary)--\r\n".utf8) }

    /// Returns a buffer with the delimiter before a part.
    func beginHead() -> ByteBuffer {
        var head = ByteBuffer(capacity: 192)
        head.append("\r\n--")
        head.append(boundary)
        head.append("\r\n")
        return head
    }

    /// Returns the delimiter and the header fields of a named part.
    func fieldHead(_ name: String, _ fileName: String?, mediaType: String?) -> Data {
        var head = beginHead()
        head.append("Content-Disposition: form-data; name=\"")
        Self.append(name, to: &head)
        if let fileName {
            head.append("\"; filename=\"")
            Self.append(fileName, to: &head)
        }
        head.append("\"\r\n")
        if let mediaType {
            head.append("Content-Type: ")
            head.append(mediaType)
            head.append("\r\n")
        }
        head.append("\r\n")
        return Data(head.bytes)
    }

    /// Appends a field or file name, escaped as by browsers.
    private static func append(_ name: String, to head: inout ByteBuffer) {
        let isPlain = name.utf8.allSatisfy { byte in
            byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\r") && byte != UInt8(ascii: "\n") && byte != 0
        }
        guard !isPlain else { return head.append(name) }
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "\""): head.append("%22")
            case UInt8(ascii: "\r"): head.append("%0D")
            case UInt8(ascii: "\n"): head.append("%0A")
            case 0: head.append("%00")
            default: head.append(byte)
            }
        }
    }

    /// Returns the segment for a part's content; the size of a file is determined now.
    static func segment(_ body: RequestBody, name: String) throws(SerializationError) -> BodySegment {
        switch body.content {
        case .none: return .bytes(Data())
        case .bytes(let data): return .bytes(data)
        case .file(let path): return .file(path: path, length: try RegularFile.openPart(path).size)
        case .writer(let length, let isReplayable, let write):
            if let length, length < 0 {
                throw .multipart(.partLength(part: name, declared: length, produced: 0))
            }
            return .stream(StreamSegment(name: name, length: length, isReplayable: isReplayable, write: write))
        }
    }
}
