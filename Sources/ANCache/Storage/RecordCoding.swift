// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// Writes the parts of a record: integers in little-endian order, and texts preceded by their length.
struct RecordWriter {
    private(set) var bytes = Data()

    mutating func write(_ number: some FixedWidthInteger) {
        var rest = number
        for _ in 0..<(type(of: number).bitWidth / 8) {
            bytes.append(UInt8(truncatingIfNeeded: rest))
            rest = rest >> 8
        }
    }

    mutating func write(_ text: String) { write(Array(text.utf8)) }

    mutating func write(_ content: [UInt8]) {
        write(UInt32(clamping: content.count))
        bytes.append(contentsOf: content)
    }

    mutating func write(_ fields: HTTPFields) {
        write(UInt32(clamping: fields.count))
        for field in fields {
            write(field.name.rawName)
            // It may be no UTF-8.
            write(field.valueBytes)
        }
    }
}

/// Reads the parts of a record. Each function returns `nil` if the bytes end early or have no such meaning.
struct RecordReader {
    private let bytes: Data
    private var position: Data.Index

    init(_ bytes: Data) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// Whether all bytes have been read.
    var isAtEnd: Bool { position == bytes.endIndex }

    mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
        let count = Number.bitWidth / 8
        guard bytes.endIndex - position >= count else { return nil }
        var number: Number = 0
        for offset in (0..<count).reversed() {
            number = number << 8 | Number(truncatingIfNeeded: bytes[position + offset])
        }
        position += count
        return number
    }

    mutating func text() -> String? { content().map { String(decoding: $0, as: UTF8.self) } }

    private mutating func content() -> Data? {
        guard let count = number(UInt32.self), bytes.endIndex - position >= Int(count) else { return nil }
        defer { position += Int(count) }
        return bytes[position..<position + Int(count)]
    }

    mutating func fields() -> HTTPFields? {
        // HTTPFields traps at 65,535 fields, and the response that is made of these has some more.
        guard let count = number(UInt32.self), count <= 2 * HTTPFields.maximumCount else { return nil }
        var fields = HTTPFields()
        for _ in 0..<count {
            guard let name = text().flatMap({ HTTPField.Name($0) }), let value = content() else { return nil }
            fields.append(HTTPField(name: name, lenientValue: value))
        }
        return fields
    }
}

extension StoredResponse {
    /// Writes the response in the form of an entry file.
    func write(to record: inout RecordWriter) {
        record.write(target)
        record.write(UInt16(clamping: status.code))
        record.write(status.reasonPhrase)
        record.write(version.rawValue)
        record.write(requestTime.milliseconds)
        record.write(responseTime.milliseconds)
        record.write(bodyLength)
        record.write(owner)
        let flags = (isDecoded ? 1 : 0) | (isInvalidated ? 2 : 0) | (isDelimited ? 4 : 0) | (isReplaced ? 8 : 0)
        record.write(UInt8(flags))
        record.write(headers)
        record.write(trailers)
        record.write(UInt8(variant.isAny ? 1 : 0))
        record.write(UInt32(clamping: variant.fields.count))
        for field in variant.fields {
            record.write(field.name)
            switch field.value {
            case .absent: record.write(UInt8(0))
            case .checksum(let checksum):
                record.write(UInt8(1))
                record.write(checksum)
            case .unknown: record.write(UInt8(2))
            }
        }
    }

    /// Reads a response in the form of an entry file; `nil` if it is damaged.
    init?(from record: inout RecordReader) {
        guard let target = record.text(), let code = record.number(UInt16.self), (200...999).contains(code),
            let reason = record.text(), let version = record.text().flatMap(HTTPVersion.init(rawValue:)),
            let requestTime = record.number(Int64.self), let responseTime = record.number(Int64.self),
            let bodyLength = record.number(Int64.self), bodyLength >= 0, let owner = record.number(UInt64.self),
            let flags = record.number(UInt8.self), let headers = record.fields(), let trailers = record.fields(),
            let variant = Self.variant(&record)
        else { return nil }
        self.init(
            target: target, status: HTTPResponse.Status(code: Int(code), reasonPhrase: reason), version: version,
            headers: headers, trailers: trailers, bodyLength: bodyLength,
            requestTime: CacheTime(milliseconds: requestTime), responseTime: CacheTime(milliseconds: responseTime),
            variant: variant, owner: owner, isDecoded: flags & 1 != 0, isReplaced: flags & 8 != 0,
            isDelimited: flags & 4 != 0, isInvalidated: flags & 2 != 0)
    }

    private static func variant(_ record: inout RecordReader) -> Variant? {
        guard let isAny = record.number(UInt8.self), let count = record.number(UInt32.self) else { return nil }
        var fields: [Variant.Field] = []
        for _ in 0..<count {
            guard let name = record.text(), let kind = record.number(UInt8.self) else { return nil }
            switch kind {
            case 0: fields.append(Variant.Field(name: name, value: .absent))
            case 1:
                guard let checksum = record.number(UInt64.self) else { return nil }
                fields.append(Variant.Field(name: name, value: .checksum(checksum)))
            case 2: fields.append(Variant.Field(name: name, value: .unknown))
            default: return nil
            }
        }
        return Variant(fields: fields, isAny: isAny != 0)
    }
}
