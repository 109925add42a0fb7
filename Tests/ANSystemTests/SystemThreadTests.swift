// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import Testing

@Suite struct SystemThreadTests {
    /// The signals that a thread blocks, of those with names.
    private static func blockedSignals() throws -> Set<Int32> {
        let blocked = Lock<Set<Int32>>([])
        try SystemThread(name: "signals") {
            var mask = sigset_t()
            unsafe pthread_sigmask(SIG_SETMASK, nil, &mask)
            let numbers = (1...SIGSYS).filter { unsafe sigismember(&mask, $0) == 1 }
            blocked.withLock { $0.formUnion(numbers) }
        }.join()
        return blocked.withLock { $0 }
    }

    @Test func `a thread leaves signals to the program's threads, but not those of its own faults`() throws {
        let faults: Set<Int32> = [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT]
        // The system does not let these be blocked.
        let unblockable: Set<Int32> = [SIGKILL, SIGSTOP]
        let blocked = try Self.blockedSignals()
        #expect(blocked == Set(1...SIGSYS).subtracting(faults).subtracting(unblockable))
    }
}
