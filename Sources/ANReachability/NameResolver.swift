// SPDX-License-Identifier: MIT

package import ANSystem
import Glibc

/// A resolver that runs each lookup on its own thread, because getaddrinfo(3) blocks and cannot be cancelled.
///
/// Concurrent lookups of the same name share one thread and one result, so there are never more threads than names.
package final class NameResolver: Sendable {
    private let pending = Lock<[String: [@Sendable ([IPAddress]) -> Void]]>([:])
    private let look: @Sendable (String) -> [IPAddress]

    /// Creates a resolver that calls `look` for the addresses of a name; it may block.
    init(_ look: @escaping @Sendable (String) -> [IPAddress]) {
        self.look = look
    }

    /// Looks up a name and calls `completion` with its addresses on another thread, or with an empty array if the
    /// lookup fails.
    func resolve(_ name: String, _ completion: @escaping @Sendable ([IPAddress]) -> Void) {
        let isFirst = pending.withLock { pending in
            pending[name, default: []].append(completion)
            return pending[name]?.count == 1
        }
        guard isFirst else { return }
        do throws(SystemError) {
            try SystemThread(name: "AN-resolver") { [self] in finish(name, look(name)) }.detach()
        } catch {
            finish(name, [])
        }
    }

    private func finish(_ name: String, _ addresses: [IPAddress]) {
        let completions = pending.withLock { $0.removeValue(forKey: name) } ?? []
        for completion in completions { completion(addresses) }
    }

    /// Returns the addresses of a name in the order in which to try them, or an empty array if the lookup fails. See
    /// getaddrinfo(3).
    package static func systemLookup(_ name: String) -> [IPAddress] {
        // A C string would end at the NUL.
        guard !name.utf8.contains(0) else { return [] }
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [IPAddress] = []
        var next = unsafe list
        while let entry = unsafe next {
            if let address = unsafe address(of: entry.pointee) { addresses.append(address) }
            unsafe next = entry.pointee.ai_next
        }
        return addresses
    }

    private static func address(of entry: addrinfo) -> IPAddress? {
        // The position of the address in sockaddr_in and sockaddr_in6, where the zone follows; see ip(7), ipv6(7).
        let (size, range): (Int, Range<Int>)
        switch unsafe entry.ai_family {
        case AF_INET: (size, range) = (MemoryLayout<sockaddr_in>.size, 4..<8)
        case AF_INET6: (size, range) = (MemoryLayout<sockaddr_in6>.size, 8..<24)
        default: return nil
        }
        guard let start = unsafe entry.ai_addr, unsafe entry.ai_addrlen >= size else { return nil }
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size)
        var address = unsafe IPAddress(bytes: bytes[range])
        guard size == MemoryLayout<sockaddr_in6>.size else { return address }
        address?.interface = unsafe bytes.loadUnaligned(fromByteOffset: range.upperBound, as: Int32.self)
        return address
    }
}

/// The schedule and the latest result of looking up one host name, as a pure state machine.
package struct HostLookup: Sendable {
    /// The addresses found by the last lookup, empty if it failed; `nil` until the first lookup ends.
    package private(set) var addresses: [IPAddress]?
    /// The time of the next attempt after a failed lookup; `nil` if no attempt is scheduled.
    package private(set) var retryTime: MonotonicInstant?
    private var isRunning = false
    private var mustRunAgain = false
    private var failuresInARow = 0

    private static let longestPause: Duration = .seconds(30)

    /// Whether the last lookup failed or found no address.
    package var hasFailed: Bool { addresses?.isEmpty == true }

    /// Creates the state for a first lookup, which the caller must start.
    package init() {
        isRunning = true
    }

    /// Records a change of the network.
    ///
    /// - Parameter isOfDefaultRoute: Whether the default route changed. Other changes matter only after a failed
    ///   lookup, and for the index of an interface, which is another one when that is created again.
    /// - Returns: Whether the caller must start a lookup.
    package mutating func noteChange(ofDefaultRoute isOfDefaultRoute: Bool) -> Bool {
        guard isOfDefaultRoute || hasFailed || addresses?.contains(where: { $0.interface != 0 }) == true else {
            return false
        }
        return begin()
    }

    /// Records the current time.
    ///
    /// - Returns: Whether a retry is due, so that the caller must start a lookup.
    package mutating func noteTime(_ now: MonotonicInstant) -> Bool {
        guard let retryTime, retryTime <= now else { return false }
        return begin()
    }

    /// Records the result of a lookup.
    ///
    /// - Returns: Whether the caller must start another lookup because the network changed during this one.
    package mutating func finish(_ addresses: [IPAddress], at now: MonotonicInstant) -> Bool {
        self.addresses = addresses
        isRunning = false
        if addresses.isEmpty {
            let pause = min(.seconds(1 << min(failuresInARow, 10)), Self.longestPause)
            retryTime = now.advanced(by: pause)
            failuresInARow += 1
        } else {
            failuresInARow = 0
        }
        return mustRunAgain && begin()
    }

    private mutating func begin() -> Bool {
        mustRunAgain = isRunning
        guard !isRunning else { return false }
        isRunning = true
        retryTime = nil
        return true
    }
}
