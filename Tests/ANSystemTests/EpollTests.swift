// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import Testing

@Suite struct EpollTests {
    @Test func `a pipe is readable while it has bytes, and after its writer closed`() throws {
        let (number, writer) = try TestPipe().release()
        let reader = FileDescriptor(takingOwnershipOf: number)
        let epoll = try Epoll()
        try epoll.add(number, for: .readable)
        #expect(try epoll.readyNow() == [])
        do {
            let sink = FileDescriptor(takingOwnershipOf: writer)
            try sink.write([1, 2])
            #expect(try epoll.readyNow() == [ReadyDescriptor(number: number, readiness: .readable)])
            #expect(try epoll.readyNow().count == 1, "Level-triggered: reported until the data is read.")
            #expect(try reader.bytes(upTo: 2) == [1, 2])
            #expect(try epoll.readyNow() == [])
        }
        #expect(try epoll.readyAfterClosing() == [ReadyDescriptor(number: number, readiness: .hungUp)])
    }

    @Test func `a pipe is writable until it is full, and fails when its reader closed`() throws {
        let (reader, number) = try TestPipe().release()
        let source = FileDescriptor(takingOwnershipOf: reader)
        let writer = FileDescriptor(takingOwnershipOf: number)
        let epoll = try Epoll()
        try epoll.add(number, for: .writable)
        #expect(try epoll.readyNow() == [ReadyDescriptor(number: number, readiness: .writable)])
        #expect(fcntl(number, F_SETFL, O_NONBLOCK) == 0)
        let error = #expect(throws: SystemError.self) { try writer.write([UInt8](repeating: 0, count: 1 << 22)) }
        #expect(error == SystemError(call: "write", code: EAGAIN))
        #expect(try epoll.readyNow() == [])
        try source.close()
        let ready = try epoll.readyAfterClosing()
        #expect(ready.map(\.number) == [number])
        #expect(ready.first?.readiness.contains(.failed) == true)
    }

    @Test func `the watched events of a descriptor can be changed`() throws {
        let pipe = try TestPipe()
        let epoll = try Epoll()
        try epoll.add(pipe.writer.number, for: .readable)
        #expect(try epoll.readyNow() == [])
        try epoll.modify(pipe.writer.number, for: [.readable, .writable])
        #expect(try epoll.readyNow().map(\.readiness) == [.writable])
    }

    @Test func `a removed descriptor is not reported, and may be removed again`() throws {
        let pipe = try TestPipe()
        let epoll = try Epoll()
        try epoll.add(pipe.writer.number, for: .writable)
        epoll.remove(pipe.writer.number)
        #expect(try epoll.readyNow() == [])
        epoll.remove(pipe.writer.number)
        epoll.remove(-1)
    }

    @Test func `misuse fails with the errno of the system call`() throws {
        let pipe = try TestPipe()
        let number = pipe.reader.number
        let epoll = try Epoll()
        #expect(throws: SystemError(call: "epoll_ctl", code: EBADF)) { try Epoll().add(-1, for: .readable) }
        #expect(throws: SystemError(call: "epoll_ctl", code: ENOENT)) { try Epoll().modify(number, for: .readable) }
        try epoll.add(number, for: .readable)
        let error = #expect(throws: SystemError.self) { try epoll.add(number, for: .readable) }
        #expect(error == SystemError(call: "epoll_ctl", code: EEXIST))
    }

    @Test func `ready descriptors are appended to the array`() throws {
        let pipe = try TestPipe()
        let epoll = try Epoll()
        try epoll.add(pipe.writer.number, for: .writable)
        let earlier = ReadyDescriptor.example
        var ready = [earlier]
        try epoll.wait(milliseconds: 0, into: &ready)
        #expect(ready.map(\.number) == [earlier.number, pipe.writer.number])
    }

    @Test func `one call reports at most 80 descriptors`() throws {
        let epoll = try Epoll()
        let pipes = try (0..<150).map { _ in try TestPipe().release() }
        defer {
            for pipe in pipes {
                _ = FileDescriptor(takingOwnershipOf: pipe.reader)
                _ = FileDescriptor(takingOwnershipOf: pipe.writer)
            }
        }
        for pipe in pipes { try epoll.add(pipe.writer, for: .writable) }
        var ready: [ReadyDescriptor] = []
        try epoll.wait(milliseconds: 0, into: &ready)
        #expect(ready.count == 80)
        for descriptor in ready { epoll.remove(descriptor.number) }
        #expect(try epoll.readyNow().count == 70)
    }
}

extension Epoll {
    /// Returns the ready descriptors without waiting.
    fileprivate borrowing func readyNow() throws -> [ReadyDescriptor] {
        try readyAfterClosing(within: 0)
    }

    /// Returns the ready descriptors after the other end of one was closed: a program that another test starts has a
    /// copy of that end until it is loaded.
    fileprivate borrowing func readyAfterClosing(within milliseconds: Int32 = 60_000) throws -> [ReadyDescriptor] {
        var ready: [ReadyDescriptor] = []
        try wait(milliseconds: milliseconds, into: &ready)
        return ready
    }
}

extension ReadyDescriptor {
    /// A descriptor number that no process uses.
    fileprivate static let example = ReadyDescriptor(number: .max, readiness: .readable)
}
