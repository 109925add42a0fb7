// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The descriptors of transports, counted in processes in which nothing else opens any.
@Suite(.timeLimit(.minutes(5))) struct EngineDescriptorsTests {
    @Test(.exitTest) func `child processes inherit no descriptor of a transport`() async {
        await #expect(processExitsWith: .success) {
            let before = Descriptors.inherited
            let transports = [try CurlTransport(), try CurlTransport()]
            let after = Descriptors.inherited
            for transport in transports { await transport.shutdown() }
            try #require(after == before)
        }
    }

    @Test(.exitTest) func `a transport whose thread cannot be created leaves no descriptor`() async {
        await #expect(processExitsWith: .success) {
            // libcurl opens files when it is first used.
            try await CurlTransport().shutdown()
            let before = Descriptors.all.count
            // Too much for the address space.
            try setThreadStackSize(1 << 46)
            for _ in 0..<20 {
                #expect(throws: TransportError.self) { try CurlTransport() }
            }
            try setThreadStackSize(8 << 20)
            try #require(Descriptors.all.count <= before)
        }
    }
}

/// Sets the size of the stacks of new threads. See pthread_setattr_default_np(3), which the C module lacks.
private func setThreadStackSize(_ size: Int) throws {
    typealias Function = @convention(c) (UnsafePointer<pthread_attr_t>) -> Int32
    guard let symbol = unsafe dlsym(nil, "pthread_setattr_default_np") else { throw SystemError.last("dlsym") }
    let set = unsafe unsafeBitCast(symbol, to: Function.self)
    var attributes = pthread_attr_t()
    unsafe pthread_attr_init(&attributes)
    unsafe pthread_attr_setstacksize(&attributes, size)
    guard unsafe set(&attributes) == 0 else { throw SystemError.last("pthread_setattr_default_np") }
}

private enum Descriptors {
    /// The numbers of the open descriptors.
    static var all: Set<Int32> {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return Set(names.compactMap { Int32($0) }.filter { fcntl($0, F_GETFD) >= 0 })
    }

    static var inherited: Set<Int32> { all.filter { fcntl($0, F_GETFD) == 0 } }
}
