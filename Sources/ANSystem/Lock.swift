// SPDX-License-Identifier: MIT

import Glibc

/// A value that one thread at a time may read or change.
///
/// It owns a `pthread_mutex_t`, which ThreadSanitizer understands; `Synchronization.Mutex` reports false races on Linux.
/// The critical section must be short and must not call out to unknown code: the mutex is neither recursive nor fair.
@safe public final class Lock<Value: Sendable>: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value

    /// Creates an unlocked lock that guards `value`.
    public init(_ value: Value) {
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        unsafe pthread_mutex_init(mutex, nil)
        self.value = value
    }

    deinit {
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deinitialize(count: 1)
        unsafe mutex.deallocate()
    }

    /// Runs `body` with exclusive access to the value and returns its result.
    @inlinable
    public func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        acquire()
        defer { release() }
        return try body(&access)
    }

    /// Puts a new value into a part. What was there is let go of outside the critical section: it may be the last reference
    /// to something that comes back here as it goes.
    public func set<Part>(_ part: WritableKeyPath<Value, Part>, to new: Part) {
        var other = new
        withLock { swap(&$0[keyPath: part], &other) }
    }

    @usableFromInline
    var access: Value {
        _read { yield value }
        _modify { yield &value }
    }

    @usableFromInline
    func acquire() {
        unsafe pthread_mutex_lock(mutex)
    }

    @usableFromInline
    func release() {
        unsafe pthread_mutex_unlock(mutex)
    }
}
