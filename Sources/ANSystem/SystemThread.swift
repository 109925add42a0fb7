// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// A thread of the library's own, for what blocks; whoever starts one joins or detaches it, once.
package struct SystemThread: Sendable {
    private let number: UInt

    /// Starts a thread that runs a closure; `name` (at most 15 bytes) is what debuggers and `top -H` show.
    ///
    /// All signals are blocked on it: a program's handlers run on the program's threads, and OpenSSL's write(2) raises no
    /// SIGPIPE. The stack has as many bytes as the system gives, unless `stackSize` says otherwise.
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
                unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
                body.run()
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            unsafe context.release()
            throw SystemError(call: "pthread_create", code: code)
        }
        number = UInt(thread)
    }

    /// Waits for the end of the thread and frees it.
    package func join() {
        pthread_join(pthread_t(number), nil)
    }

    /// Lets the thread free itself at its end.
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
