// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// A set of events that a descriptor is watched for or has reported.
public struct Readiness: OptionSet, Hashable, Sendable {
    /// The event bits of epoll_ctl(2).
    public let rawValue: UInt32

    /// Creates a set from the event bits of epoll_ctl(2), which are not checked.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Data can be read, a connection can be accepted, or the peer has closed the connection (`EPOLLIN`).
    public static let readable = Readiness(rawValue: CLINUX_EPOLLIN)
    /// Data can be written (`EPOLLOUT`).
    public static let writable = Readiness(rawValue: CLINUX_EPOLLOUT)
    /// The descriptor has an error, or it writes to a pipe without a reader (`EPOLLERR`); always watched for.
    public static let failed = Readiness(rawValue: CLINUX_EPOLLERR)
    /// Events are reported once for each change instead of as long as they last (`EPOLLET`); never part of a report.
    public static let edgeTriggered = Readiness(rawValue: CLINUX_EPOLLET)
    /// The peer will send no more (`EPOLLRDHUP`).
    public static let ended = Readiness(rawValue: 0x2000)
    /// The peer hung up (`EPOLLHUP`); always watched for.
    public static let hungUp = Readiness(rawValue: CLINUX_EPOLLHUP)
}

/// A descriptor and the events that it is ready for, as reported by ``Epoll/wait(milliseconds:into:)``.
public struct ReadyDescriptor: Hashable, Sendable {
    /// The number of the watched descriptor.
    public let number: Int32
    /// The events that it is ready for.
    public let readiness: Readiness

    package init(number: Int32, readiness: Readiness) {
        self.number = number
        self.readiness = readiness
    }
}

/// A set of watched file descriptors, which any thread may change, also during a ``wait(milliseconds:into:)``. A
/// descriptor that is closed, and of which there is no duplicate, is no longer in the set. See epoll(7).
public struct Epoll: ~Copyable, Sendable {
    private let descriptor: FileDescriptor

    /// Creates an empty set. Throws the error of epoll_create1(2), such as `EMFILE`.
    public init() throws(SystemError) {
        let number = epoll_create1(CLINUX_EPOLL_CLOEXEC)
        guard number >= 0 else { throw SystemError.last("epoll_create1") }
        descriptor = FileDescriptor(takingOwnershipOf: number)
    }

    /// Adds a descriptor to the set, level-triggered unless `readiness` contains ``Readiness/edgeTriggered``. Throws
    /// `EEXIST` if it is in the set already, and `EPERM` for a regular file or a directory; see epoll_ctl(2).
    public func add(_ number: Int32, for readiness: Readiness) throws(SystemError) {
        try control(EPOLL_CTL_ADD, number, readiness)
    }

    /// Replaces the events that a descriptor in the set is watched for, including ``Readiness/edgeTriggered``. Throws
    /// `ENOENT` if it is not in the set; see epoll_ctl(2).
    public func modify(_ number: Int32, for readiness: Readiness) throws(SystemError) {
        try control(EPOLL_CTL_MOD, number, readiness)
    }

    /// Removes a descriptor from the set. Removing one that is not in the set, for example because it was closed, has
    /// no effect.
    public func remove(_ number: Int32) {
        _ = epoll_ctl(descriptor.number, EPOLL_CTL_DEL, number, nil)
    }

    private func control(_ operation: Int32, _ number: Int32, _ readiness: Readiness) throws(SystemError) {
        var event = unsafe clinux_epoll_event(readiness.rawValue, number)
        guard unsafe epoll_ctl(descriptor.number, operation, number, &event) == 0 else {
            throw SystemError.last("epoll_ctl")
        }
    }

    /// The number of descriptors after which a wait leaves others for the next one. 80 events of 12 bytes are below the
    /// 1,024 bytes up to which a temporary allocation is on the stack.
    package static var maximumReady: Int { 80 }

    /// Blocks the calling thread until a descriptor is ready or the timeout has passed, and appends the ready
    /// descriptors. See epoll_wait(2).
    ///
    /// A signal ends the wait early without an error.
    ///
    /// - Parameters:
    ///   - milliseconds: The timeout in milliseconds; 0 returns at once, and -1 waits without limit.
    ///   - ready: The array to append to; one call appends at most ``maximumReady`` descriptors.
    /// - Throws: The error of epoll_wait(2).
    public func wait(milliseconds: Int32, into ready: inout [ReadyDescriptor]) throws(SystemError) {
        let failure: SystemError? = unsafe withUnsafeTemporaryAllocation(
            of: epoll_event.self, capacity: Self.maximumReady
        ) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = unsafe epoll_wait(descriptor.number, start, Int32(buffer.count), milliseconds)
            if count < 0 { return errno == EINTR ? nil : SystemError.last("epoll_wait") }
            for index in 0..<Int(count) {
                let event = unsafe start + index
                unsafe ready.append(
                    ReadyDescriptor(
                        number: clinux_epoll_descriptor(event),
                        readiness: Readiness(rawValue: clinux_epoll_events(event))))
            }
            return nil
        }
        if let failure { throw failure }
    }
}
