// SPDX-License-Identifier: MIT

import ANReachability
import ANSystem
import Glibc

/// A network namespace, created with ip-netns(8) and deleted with this object.
final class NetworkNamespace: Sendable {
    let name: String

    /// The reason why namespaces cannot be created; `nil` if they can.
    static let obstacle: String? = {
        do {
            _ = try NetworkNamespace()
            return nil
        } catch {
            return "A network namespace cannot be created here: \(error)"
        }
    }()

    init() throws {
        name = "an-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        try Self.run(["netns", "add", name])
    }

    deinit {
        _ = try? Self.run(["netns", "delete", name])
    }

    /// Runs ip(8) in the namespace with arguments separated by spaces.
    func ip(_ arguments: String) throws {
        try Self.run(["-n", name] + arguments.split(separator: " ").map(String.init))
    }

    /// Runs lines of ip(8) commands in the namespace as one fast batch.
    func batch(_ lines: String) throws {
        let path = "/tmp/\(name).batch"
        defer { unsafe unlink(path) }
        do {
            let file = try FileDescriptor(opening: path, flags: O_WRONLY | O_CREAT | O_EXCL)
            unsafe try file.writeAll(Array(lines.utf8).span.bytes)
        }
        try Self.run(["-n", name, "-batch", path])
    }

    /// Returns the number of the namespace's sockets that are subscribed to its changes.
    func subscriberCount() throws -> Int {
        // sk Eth Pid Groups …: sockets of NETLINK_ROUTE with groups; the kernel's own sockets have none.
        try Self.run(["netns", "exec", name, "cat", "/proc/net/netlink"]).split(separator: "\n").count { line in
            let words = line.split(separator: " ")
            return words.count > 3 && words[1] == "0" && UInt32(words[3], radix: 16) ?? 0 != 0
        }
    }

    /// Creates `v0` with an address and its peer `v1`, both up, without a default route.
    func addPair() throws {
        try ip("link set lo up")
        try ip("link add v0 type veth peer name v1")
        try ip("link set v0 up")
        try ip("link set v1 up")
        try ip("address add 10.9.0.2/24 dev v0")
    }

    /// Returns a monitor of this namespace.
    func monitor(
        receiveBuffer: Int32? = nil, lookUp: @escaping @Sendable (String) -> [IPAddress] = { _ in [] }
    ) -> ReachabilityMonitor {
        ReachabilityMonitor(
            openSocket: { [self] () throws(ReachabilityError) in try openSocket(receiveBuffer: receiveBuffer) },
            lookUp: lookUp)
    }

    /// Opens a netlink socket in the namespace. A socket belongs to the namespace of the opening thread, so a new
    /// thread enters the namespace, opens the socket and ends.
    private func openSocket(receiveBuffer: Int32?) throws(ReachabilityError) -> RouteSocket {
        let path = "/run/netns/\(name)"
        let opened = Lock<Result<Int32, ReachabilityError>?>(nil)
        let thread = try? SystemThread(name: "namespace") {
            guard let symbol = unsafe dlsym(nil, "setns"),
                let file = try? FileDescriptor(opening: path, flags: O_RDONLY)
            else { return }
            let setns = unsafe unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)
            // CLONE_NEWNET
            guard setns(file.number, 0x4000_0000) == 0 else { return }
            do throws(ReachabilityError) {
                let number = try RouteSocket().release().release()
                if var size = receiveBuffer {
                    unsafe setsockopt(number, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
                }
                opened.withLock { $0 = .success(number) }
            } catch {
                opened.withLock { $0 = .failure(error) }
            }
        }
        thread?.join()
        guard let result = opened.withLock({ $0 }) else {
            throw ReachabilityError(SystemError(call: "setns", code: EPERM))
        }
        return try RouteSocket(takingOwnershipOf: FileDescriptor(takingOwnershipOf: result.get()))
    }

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    @discardableResult
    private static func run(_ arguments: [String]) throws -> String {
        let outcome = try ChildProcess.run(["ip"] + arguments)
        guard outcome.exitCode == 0 else {
            throw Failure(description: "ip \(arguments.joined(separator: " ")): \(outcome.output)")
        }
        return outcome.output
    }
}

/// Runs a command from the `PATH` and waits for its end.
enum ChildProcess {
    struct Outcome {
        let exitCode: Int32
        /// The output of standard output and standard error.
        let output: String
    }

    static func run(_ command: [String]) throws -> Outcome {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw SystemError.last("pipe") }
        let reader = FileDescriptor(takingOwnershipOf: ends[0])
        let writer = FileDescriptor(takingOwnershipOf: ends[1])
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, writer.number, 1)
        unsafe posix_spawn_file_actions_adddup2(&actions, writer.number, 2)
        unsafe posix_spawn_file_actions_addclose(&actions, reader.number)
        var words: [UnsafeMutablePointer<CChar>?] = unsafe command.map { unsafe strdup($0) } + [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        var process = pid_t()
        let code = unsafe posix_spawnp(&process, command[0], &actions, nil, &words, environ)
        guard code == 0 else { throw SystemError(call: "posix_spawnp", code: code) }
        try writer.close()
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe read(reader.number, &buffer, buffer.count)
            guard count > 0 else { break }
            output += buffer[..<count]
        }
        var status: Int32 = 0
        unsafe waitpid(process, &status, 0)
        return Outcome(exitCode: (status >> 8) & 0xFF, output: String(decoding: output, as: UTF8.self))
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
