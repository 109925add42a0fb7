// SPDX-License-Identifier: MIT

import ANReachability
import ANSystem
import Glibc
import TestSupport

/// A network namespace, created with ip-netns(8) and deleted with this object.
final class NetworkNamespace: Sendable {
    let name: String

    /// Whether namespaces can be created, which requires privileges and ip(8).
    static var canBeCreated: Bool {
        get async { (try? await NetworkNamespace()) != nil }
    }

    init() async throws {
        name = "an-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        try await Self.run(["netns", "add", name])
    }

    deinit {
        // Its end is not awaited.
        _ = try? ChildProcess(Command("ip", "netns", "delete", name))
    }

    /// Runs ip(8) in the namespace with arguments separated by spaces.
    func ip(_ arguments: String) async throws {
        try await Self.run(["-n", name] + arguments.split(separator: " ").map(String.init))
    }

    /// Runs lines of ip(8) commands in the namespace as one fast batch.
    func batch(_ lines: String) async throws {
        let path = "/tmp/\(name).batch"
        defer { unsafe unlink(path) }
        do {
            let file = try FileDescriptor(opening: path, flags: O_WRONLY | O_CREAT | O_EXCL)
            unsafe try file.writeAll(Array(lines.utf8).span.bytes)
        }
        try await Self.run(["-n", name, "-batch", path])
    }

    /// Returns the number of the namespace's sockets that are subscribed to its changes.
    func subscriberCount() async throws -> Int {
        // sk Eth Pid Groups …: sockets of NETLINK_ROUTE with groups; the kernel's own sockets have none.
        let sockets = try await Self.run(["netns", "exec", name, "cat", "/proc/net/netlink"])
        return sockets.split(separator: "\n").count { line in
            let words = line.split(separator: " ")
            return words.count > 3 && words[1] == "0" && UInt32(words[3], radix: 16) ?? 0 != 0
        }
    }

    /// Creates `v0` with an address and its peer `v1`, both up, without a default route.
    func addPair() async throws {
        try await batch(
            """
            link set lo up
            link add v0 type veth peer name v1
            link set v0 up
            link set v1 up
            address add 10.9.0.2/24 dev v0

            """)
    }

    /// Returns a monitor of this namespace.
    func monitor(
        receiveBuffer: Int32? = nil, lookUp: @escaping @Sendable (String) -> [IPAddress] = { _ in [] }
    ) -> ReachabilityMonitor {
        ReachabilityMonitor(
            openSocket: { [self] () throws(ReachabilityError) in try openSocket(receiveBuffer: receiveBuffer) },
            lookUp: lookUp)
    }

    /// Returns the path to an address, as `ip route get` would.
    func path(to address: IPAddress) throws(ReachabilityError) -> NetworkPath? {
        try inside { () throws(ReachabilityError) in
            var socket = try RouteSocket()
            return try socket.path(to: address)
        }
    }

    private func openSocket(receiveBuffer: Int32?) throws(ReachabilityError) -> RouteSocket {
        let (changes, requests) = try inside { () throws(ReachabilityError) in try RouteSocket().release() }
        if var size = receiveBuffer {
            unsafe setsockopt(changes, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        return RouteSocket(
            changes: FileDescriptor(takingOwnershipOf: changes), requests: FileDescriptor(takingOwnershipOf: requests))
    }

    /// Runs code in the namespace. A socket belongs to the namespace of the opening thread, so a new thread enters the
    /// namespace, runs the code and ends.
    private func inside<Value: Sendable>(
        _ body: @escaping @Sendable () throws(ReachabilityError) -> Value
    ) throws(ReachabilityError) -> Value {
        let path = "/run/netns/\(name)"
        let outcome = Lock<Result<Value, ReachabilityError>?>(nil)
        let thread = try? SystemThread(name: "namespace") {
            guard let symbol = unsafe dlsym(nil, "setns"),
                let file = try? FileDescriptor(opening: path, flags: O_RDONLY)
            else { return }
            let setns = unsafe unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)
            // CLONE_NEWNET
            guard setns(file.number, 0x4000_0000) == 0 else { return }
            do throws(ReachabilityError) {
                let value = try body()
                outcome.withLock { $0 = .success(value) }
            } catch {
                outcome.withLock { $0 = .failure(error) }
            }
        }
        thread?.join()
        guard let result = outcome.withLock({ $0 }) else {
            throw ReachabilityError(SystemError(call: "setns", code: EPERM))
        }
        return try result.get()
    }

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    @discardableResult
    private static func run(_ arguments: [String]) async throws -> String {
        let outcome = try await Command(["ip"] + arguments).run()
        guard outcome.status == 0 else {
            throw Failure(description: "ip \(arguments.joined(separator: " ")): \(outcome.text)")
        }
        return outcome.text
    }
}

/// A gate that blocks threads until it is opened.
final class TestGate: Sendable {
    private let reader: FileDescriptor
    private let writer: Lock<Int32>

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw SystemError.last("pipe") }
        reader = FileDescriptor(takingOwnershipOf: ends[0])
        writer = Lock(ends[1])
    }

    deinit {
        open()
    }

    /// Returns once the gate is open.
    func wait() {
        var byte: UInt8 = 0
        // All waiting threads read the end of the pipe.
        while unsafe read(reader.number, &byte, 1) < 0 && errno == EINTR {}
    }

    func open() {
        writer.withLock { number in
            if number >= 0 { close(number) }
            number = -1
        }
    }
}
