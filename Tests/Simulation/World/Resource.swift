// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes

/// A resource of a simulated origin, whose properties follow from its host, its number, and the seed of the program.
struct Resource: Hashable {
    let host: String
    let number: Int
    private let seed: UInt64

    init(_ host: String, _ number: Int, seed: UInt64) {
        self.host = host
        self.number = number
        self.seed = seed
    }

    init?(_ url: URL, seed: UInt64) {
        guard let host = url.host(), url.path.hasPrefix("/r/"), let number = Int(url.path.dropFirst(3)) else {
            return nil
        }
        self.init(host, number, seed: seed)
    }

    /// The resource that the beginning of some bytes names; `nil` if they are too few.
    init?(ofContent data: Data, seed: UInt64) {
        let words = String(decoding: data.prefix(40), as: UTF8.self).split(separator: "@")
        guard words.count > 1,
            let url = URL(string: "https://\(words[0].replacing("/", with: "/r/", maxReplacements: 1))")
        else { return nil }
        self.init(url, seed: seed)
    }

    /// Whether the bytes of a resource may be these few, which do not name it.
    static func mayBegin(with data: Data) -> Bool {
        Origins.hosts.contains { data.prefix($0.utf8.count).elementsEqual($0.utf8.prefix(data.count)) }
    }

    /// Returns a number that a property has for this resource.
    private func choice(_ property: Int, _ count: Int) -> Int {
        var hash = seed &+ UInt64(property) &* 0x9E37_79B9_7F4A_7C15
        for byte in host.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        hash = (hash ^ UInt64(number)) &* 0xBF58_476D_1CE4_E5B9
        return Int((hash ^ (hash >> 29)) >> 11) % count
    }

    // MARK: Content

    /// The number of bytes of a version.
    func length(_ version: Int) -> Int {
        [0, 1, 40, 300, 3_000, 20_000][choice(1, 6)] + (version * 7) % 5
    }

    /// The bytes of a version: its name and offsets, repeated, so that each part tells the version and its place.
    func content(_ version: Int, language: String = "") -> Data {
        let name = Array("\(host)/\(number)@\(version)\(language):".utf8)
        let length = length(version)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length + 40)
        while bytes.count < length { bytes += name + Array("\(bytes.count);".utf8) }
        return Data(bytes.prefix(length))
    }

    /// The version at a date: each lives for some seconds.
    func version(at milliseconds: Int64) -> Int {
        let period: Int64 = [.max, 20_000, 3_000, 700][choice(2, 4)]
        return max(0, Int((milliseconds - 1_767_225_600_000) / period))
    }

    /// Whether bytes are those of one whole version.
    func isWhole(_ data: Data, at milliseconds: Int64) -> Bool {
        let last = version(at: milliseconds)
        // The beginning names the version, unless it is too short.
        let text = String(decoding: data.prefix(60), as: UTF8.self)
        let named = text.split(separator: "@").dropFirst().first.flatMap { Int($0.prefix { $0.isNumber }) }
        let versions = named.map { $0...$0 } ?? max(0, last - 20)...last + 20
        return versions.contains { version in
            data.count == length(version)
                && ([""] + Self.languages).contains { data == content(version, language: $0) }
        }
    }

    static let languages = ["-de", "-en"]

    // MARK: Fields

    enum Validator { case strong, weak, date, none }
    var validator: Validator { [.strong, .strong, .weak, .date, .none][choice(3, 5)] }

    func entityTag(_ version: Int, language: String) -> String? {
        switch validator {
        case .strong: "\"\(version)\(language)\""
        case .weak: "W/\"\(version)\(language)\""
        case .date, .none: nil
        }
    }

    var supportsRanges: Bool { choice(4, 4) > 0 }
    var varies: Bool { choice(5, 4) == 0 }
    var cacheControl: String? {
        [
            nil, "max-age=1", "max-age=10", "max-age=60", "no-store", "no-cache", "max-age=2, must-revalidate",
            "max-age=1, stale-while-revalidate=2", "max-age=1, stale-if-error=3", "private, max-age=30",
        ][choice(6, 10)]
    }

    /// Whether a cache may use the resource while it validates it.
    var isValidatedInBackground: Bool { cacheControl?.contains("stale-while-revalidate") ?? false }

    /// Where the resource redirects to, and with which status.
    var redirect: (status: Int, to: Resource)? {
        guard choice(7, 4) == 0 else { return nil }
        // To a higher number, so that no redirects form a circle.
        let target = Resource(Origins.hosts[choice(8, Origins.hosts.count)], number + 1 + choice(9, 2), seed: seed)
        return ([301, 302, 303, 307, 308][choice(10, 5)], target)
    }

    var url: String { "https://\(host)/r/\(number)" }

    /// The root of a host.
    static func root(of host: String) -> URL { URL(string: "https://\(host)/") ?? URL(filePath: "/") }
}
