// SPDX-License-Identifier: MIT

import ANHTTP

/// An entity tag (RFC 9110 §8.8.3).
struct EntityTag: Hashable, Sendable {
    /// Whether the tag is marked as weak.
    let isWeak: Bool
    /// The opaque tag with its quotes.
    let opaque: WireText

    /// Parses one tag; `nil` for any other text.
    init?(_ text: some StringProtocol) {
        var rest = Substring(text.trimmingBlanks)
        isWeak = rest.hasPrefix("W/")
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.utf8.count >= 2, rest.hasPrefix("\""), rest.hasSuffix("\""),
            !rest.dropFirst().dropLast().utf8.contains(UInt8(ascii: "\""))
        else { return nil }
        opaque = WireText(String(rest))
    }

    /// Parses the value of `ETag`, also one without quotation marks, which browsers return to the server as it is.
    init?(ofField text: String) {
        if let tag = EntityTag(text) {
            self = tag
            return
        }
        let bare = text.trimmingBlanks
        guard !bare.isEmpty, bare != "*", bare.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != 0x22 && $0 != 0x2C }) else {
            return nil
        }
        (isWeak, opaque) = (false, WireText(bare))
    }

    /// Returns whether the tags are equal and both are strong (RFC 9110 §8.8.3.2).
    func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && opaque == other.opaque
    }

    /// Returns whether the opaque tags are equal.
    func matchesWeakly(_ other: EntityTag) -> Bool {
        opaque == other.opaque
    }

    /// Parses the tags of a list, in which a tag may contain commas. Members that are not tags are omitted.
    static func list(_ values: [String]) -> [EntityTag] {
        var tags: [EntityTag] = []
        for value in values {
            var member: [UInt8] = []
            var isQuoted = false
            for byte in value.utf8 {
                if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
                if byte == UInt8(ascii: ","), !isQuoted {
                    EntityTag(String(decoding: member, as: UTF8.self)).map { tags.append($0) }
                    member = []
                } else {
                    member.append(byte)
                }
            }
            EntityTag(String(decoding: member, as: UTF8.self)).map { tags.append($0) }
        }
        return tags
    }
}
