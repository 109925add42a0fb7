// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// A thread for blocking work. Its creator must either join or detach it, exactly once.
package struct SystemThread: Sendable {
    private let number: UInt

    /// The number of the current thread, which no other running thread has.
    package static var current: UInt { UInt(pthread_self()) }

    /// Starts a thread that runs a closure.
    ///
    /// Signals are blocked on the thread: a program's signal handlers run on the program's own threads, and a write by
    /// OpenSSL to a closed connection raises no SIGPIPE. Those of the thread's own faults are not, because the effect of
    /// a fault would be undefined, see pthread_sigmask(3): no handler would print a backtrace.
    ///
    /// - Parameters:
    ///   - name: The thread's name in debuggers and `top -H`, cut to 15 bytes.
    ///   - stackSize: The size of the stack in bytes; `nil` for the system's default.
    ///   - body: The closure to run.
    package init(
        name: String, stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        let context = unsafe Unmanaged.passRetained(Body(name: name, run: body))
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        if let stackSize { unsafe pthread_attr_setstacksize(&attributes, stackSize) }
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                unsafe clinux_set_thread_name(body.name)
                var signals = sigset_t()
                unsafe sigfillset(&signals)
                for fault in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT] {
                    unsafe sigdelset(&signals, fault)
                }
                unsafe pthread_sigmask(SIG_SETMASK, &signals, nil)
                body.run()
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            unsafe context.release()
            throw SystemError(call: "pthread_create", code: code)
        }
        number = UInt(thread)
    }

    /// Waits until the thread ends, and frees it.
    package func join() {
        pthread_join(pthread_t(number), nil)
    }

    /// Makes the thread free itself when it ends.
    package func detach() {
        pthread_detach(pthread_t(number))
    }

    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }
}
