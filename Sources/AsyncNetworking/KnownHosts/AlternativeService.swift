// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// An alternative service of an origin: HTTP/3 on the same host (RFC 7838). ``SessionManager/alternativeServices`` has
/// those of a session.
public struct AlternativeService: Hashable, Sendable {
    /// The host of the origin in lower case, without a trailing dot and without brackets around an IPv6 address.
    public let host: String
    /// The port of the origin; 443 if its URLs name none.
    public let port: Int
    /// The UDP port of the alternative, the same as ``port`` on most servers.
    public let alternativePort: Int
    /// The time at which the alternative ceases to be used: set by the parameter `ma` of `Alt-Svc`, 24 hours after the
    /// response without it (RFC 7838 §3.1), and at most `Date.distantFuture`.
    public let expiry: Date
    /// Whether the server states that the alternative remains valid when the network changes.
    package let persists: Bool

    /// Creates the alternative service of an origin.
    package init(host: String, port: Int, alternativePort: Int, expiry: Date, persists: Bool) {
        self.host = host
        self.port = port
        self.alternativePort = alternativePort
        self.expiry = min(expiry, .distantFuture)
        self.persists = persists
    }
}

extension AlternativeService: HostEntry {
    /// The host and the port of an https origin.
    package struct Key: Hashable, Comparable, Sendable {
        package let host: String
        package let port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        init(_ url: URL) {
            self.init(host: HostName(url).zonedText, port: url.port ?? 443)
        }

        package static func < (left: Key, right: Key) -> Bool { (left.host, left.port) < (right.host, right.port) }
    }

    package var key: Key { Key(host: host, port: port) }
    package static var noExperience: AlternativeExperience { AlternativeExperience() }
    package func isSameService(as other: AlternativeService) -> Bool { alternativePort == other.alternativePort }
    package static var fileTitle: String { "# Alt-Svc cache" }
    package static var limitsFiles: Bool { true }

    /// Parses a line of curl's cache of alternative services, such as
    /// `h2 example.com 443 h3 example.com 443 "20301231 23:59:59" 0 0`; `nil` for comments, malformed lines, and
    /// alternatives that are not HTTP/3 on the host of the origin.
    package init?(fileLine line: Substring) {
        let parts = line.split(at: "\"", omittingEmptySubsequences: false)
        guard parts.count == 3, let expiry = try? Date.ISO8601FormatStyle.curlFile.parse(String(parts[1])) else {
            return nil
        }
        let words = parts[0].split(at: " ")
        guard words.count == 6, ["h1", "h2", "h3"].contains(words[0]), words[3] == "h3" else { return nil }
        let host = HostName(String(words[1]))
        guard host.isStorable, host == HostName(String(words[4])), let port = UInt16(words[2]), port > 0,
            let alternativePort = UInt16(words[5]), alternativePort > 0
        else { return nil }
        self.init(
            host: host.zonedText, port: Int(port), alternativePort: Int(alternativePort), expiry: expiry,
            persists: parts[2].split(at: " ").first == "1")
    }

    /// The line of this alternative in curl's cache.
    package var fileLine: String {
        let name = host.contains(":") ? "[\(host)]" : host
        let time = Date.ISO8601FormatStyle.curlFile.format(expiry)
        return "h2 \(name) \(port) h3 \(name) \(alternativePort) \"\(time)\" \(persists ? 1 : 0) 0"
    }
}

/// The value of an `Alt-Svc` field (RFC 7838 §3).
package enum AlternativeServiceField: Hashable {
    /// The origin has no alternatives any more.
    case clear
    /// The alternatives in the order of the server's preference, which replace all earlier ones; at most
    /// ``maximumCount``.
    case alternatives([Alternative])

    /// An alternative.
    package struct Alternative: Hashable {
        /// The protocol (ALPN, RFC 7301), such as `h3`.
        package let protocolID: String
        /// The host name, without brackets around an IPv6 address; empty for the host of the origin.
        package let host: String
        /// The port, from 1 to 65535.
        package let port: Int
        /// The number of seconds for which the alternative is known, at most `Int64.max`; 86,400 by default.
        package let maximumAge: Int64
        /// Whether the alternative remains valid when the network changes.
        package let persists: Bool
    }

    /// The maximum length in bytes of a value; a longer one is ignored.
    package static let maximumLength = 8_192
    /// The number of alternatives after which the rest of a value is ignored.
    package static let maximumCount = 16

    /// Parses the values of all `Alt-Svc` fields of a response, joined by commas; `nil` if they are malformed or too
    /// long.
    ///
    /// Unknown parameters are ignored. An alternative whose protocol has a malformed percent-encoding, or whose port or
    /// `ma` is not a number, is left out.
    package init?(_ value: String) {
        guard value.utf8.count <= Self.maximumLength else { return nil }
        if value.trimmingBlanks == "clear" {
            self = .clear
            return
        }
        var scanner = HeaderScanner(value)
        var alternatives: [Alternative] = []
        var count = 0
        repeat {
            scanner.skipBlanks()
            // An empty element of a list is allowed (RFC 9110 §5.6.1).
            guard let next = scanner.next, next != UInt8(ascii: ",") else { continue }
            count += 1
            guard let element = Self.element(&scanner) else { return nil }
            if let alternative = element.alternative { alternatives.append(alternative) }
        } while scanner.take(UInt8(ascii: ",")) && count < Self.maximumCount
        guard count > 0, count == Self.maximumCount || scanner.next == nil else { return nil }
        self = .alternatives(alternatives)
    }

    /// The parts of an alternative, and its parameters.
    private struct Element {
        let name: String
        let authority: String
        var parameters: [String: String] = [:]

        /// The alternative; `nil` if it cannot be used.
        var alternative: Alternative? {
            guard let name = Data(percentEncoded: name).flatMap({ String(validating: $0, as: UTF8.self) }),
                let colon = authority.unicodeScalars.lastIndex(of: ":"),
                let port = Int(digits: authority[authority.unicodeScalars.index(after: colon)...]), 1...65_535 ~= port,
                let age = parameters["ma"].map({ Int64(clampingDigits: $0) }) ?? 86_400
            else { return nil }
            var host = authority[..<colon]
            if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
            return Alternative(
                protocolID: name, host: String(host), port: port, maximumAge: age,
                persists: parameters["persist"] == "1")
        }
    }

    /// Parses one element of the list; `nil` if it is malformed.
    private static func element(_ scanner: inout HeaderScanner) -> Element? {
        let name = scanner.takeToken()
        guard !name.isEmpty, scanner.take(UInt8(ascii: "=")), let authority = scanner.takeQuotedString() else {
            return nil
        }
        var element = Element(name: name, authority: authority)
        scanner.skipBlanks()
        while scanner.take(UInt8(ascii: ";")) {
            scanner.skipBlanks()
            let (parameter, argument) = scanner.takeParameter()
            guard !parameter.isEmpty, let argument else { return nil }
            element.parameters[parameter] = argument
            scanner.skipBlanks()
        }
        guard scanner.next == nil || scanner.next == UInt8(ascii: ",") else { return nil }
        return element
    }
}

/// Whether an alternative service works.
///
/// It is *unproven* until a response was received over it. Meanwhile one request at a time tries it, and the others use
/// the origin's own connection. One that has failed is *broken* for five minutes, twice as long after each further
/// failure, and at most a day; after that it is unproven again.
package struct AlternativeExperience: Sendable {
    /// The time in seconds after which another request may try an unproven alternative although the result of the last
    /// one is not known.
    private static let maximumTrial: TimeInterval = 60
    /// The time in seconds for which an alternative that failed for the first time is not used.
    private static let shortestBreak: TimeInterval = 300
    /// The maximum time in seconds for which an alternative that failed is not used.
    private static let longestBreak: TimeInterval = 86_400

    private var state = State.unproven
    /// The number of failures since the alternative worked last.
    private var failures = 0

    private enum State: Equatable {
        /// No request has used the alternative since it was learned or since it was broken.
        case unproven
        /// A request tries the alternative; another one may, after the given time.
        case onTrial(until: Date)
        /// A response was received over the alternative.
        case proven
        /// The alternative has failed and is not used until the given time.
        case broken(until: Date)
    }

    /// Returns how a request should use the alternative; `nil` if it should not.
    fileprivate mutating func take(at now: Date) -> AlternativeUse? {
        switch state {
        case .proven: return .proven
        case .broken(let end) where Self.isAhead(end, of: now), .onTrial(let end) where Self.isAhead(end, of: now):
            return nil
        case .broken, .onTrial, .unproven:
            let end = now.addingTimeInterval(Self.maximumTrial)
            state = .onTrial(until: end)
            return .trial(until: end)
        }
    }

    /// Notes whether the alternative worked. A failure while it is broken is ignored: requests that were sent together
    /// fail together.
    fileprivate mutating func note(hasWorked: Bool, at now: Date) {
        guard !hasWorked else { return self = AlternativeExperience(state: .proven) }
        if case .broken(let end) = state, Self.isAhead(end, of: now) { return }
        let time = min(Self.shortestBreak * Double(1 << min(failures, 20)), Self.longestBreak)
        self = AlternativeExperience(state: .broken(until: now.addingTimeInterval(time)), failures: failures + 1)
    }

    /// Whether a time is to come. One that is further away than the longest break is left from before the clock was set
    /// back.
    private static func isAhead(_ end: Date, of now: Date) -> Bool {
        end > now && end <= now.addingTimeInterval(longestBreak)
    }

    fileprivate mutating func endTrial(until end: Date) {
        if state == .onTrial(until: end) { state = .unproven }
    }
}

/// The use of an alternative service by one request.
package enum AlternativeUse: Equatable, Sendable {
    /// The alternative is proven.
    case proven
    /// The request tries the alternative, alone until the given time, which identifies the trial.
    case trial(until: Date)
}

extension HostTable where Entry == AlternativeService {
    /// Applies a response's field: the first alternative that is HTTP/3 on the same host replaces that of the origin,
    /// and an origin without one is removed.
    ///
    /// - Parameter age: The number of seconds since the response was generated.
    package mutating func note(
        _ field: AlternativeServiceField, from key: AlternativeService.Key, age: Int64, at now: Date
    ) {
        guard case .alternatives(let alternatives) = field,
            let usable = alternatives.first(where: {
                $0.protocolID == "h3" && ($0.host.isEmpty || HostName($0.host).zonedText == key.host)
                    && $0.maximumAge > age
            })
        else { return remove(key) }
        setWithinLimit(
            AlternativeService(
                host: key.host, port: key.port, alternativePort: usable.port,
                expiry: now.addingTimeInterval(Double(usable.maximumAge) - Double(age)), persists: usable.persists))
    }

    /// Returns the port of the alternative that a request should use, and how; `nil` if the request should use the
    /// origin's own connection.
    package mutating func take(for key: AlternativeService.Key, at now: Date) -> (port: Int, use: AlternativeUse)? {
        guard let service = self[key]?.entry else { return nil }
        guard service.expiry > now else {
            remove(key)
            return nil
        }
        return self[key]?.experience.take(at: now).map { (service.alternativePort, $0) }
    }

    /// Notes whether an alternative worked, unless it was replaced by another port meanwhile.
    package mutating func noteUse(of port: Int, for key: AlternativeService.Key, hasWorked: Bool, at now: Date) {
        if self[key]?.entry.alternativePort == port { self[key]?.experience.note(hasWorked: hasWorked, at: now) }
    }

    /// Ends a use, of which a trial may have had no result: the request was cancelled, or failed for another reason.
    package mutating func end(_ use: AlternativeUse, of port: Int, for key: AlternativeService.Key) {
        guard case .trial(let end) = use, self[key]?.entry.alternativePort == port else { return }
        self[key]?.experience.endTrial(until: end)
    }
}
