// SPDX-License-Identifier: MIT

public import Glibc

/// A value that one thread at a time may read or change.
///
/// It has a `pthread_mutex_t`, which ThreadSanitizer understands; `Synchronization.Mutex` reports false races on Linux. Copies
/// are the same lock: mutex and value live in one allocation, at an address that stays.
/// The critical section must be short and must not call out to unknown code: the mutex is neither recursive nor fair.
@safe public struct Lock<Value: Sendable>: @unchecked Sendable {
    @usableFromInline let storage: Storage

    /// The value, with the mutex behind it.
    @safe @usableFromInline final class Storage: ManagedBuffer<Value, pthread_mutex_t> {
        deinit {
            _ = unsafe withUnsafeMutablePointerToElements { unsafe pthread_mutex_destroy($0) }
        }
    }

    /// Creates an unlocked lock that guards `value`.
    @inlinable
    public init(_ value: Value) {
        let buffer = unsafe Storage.create(minimumCapacity: 1) { buffer in
            unsafe buffer.withUnsafeMutablePointerToElements { mutex in
                unsafe mutex.initialize(to: pthread_mutex_t())
                unsafe pthread_mutex_init(mutex, nil)
            }
            return value
        }
        storage = unsafe unsafeDowncast(buffer, to: Storage.self)
    }

    /// Runs `body` with exclusive access to the value and returns its result.
    @inlinable
    public func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe storage.withUnsafeMutablePointers { (value, mutex) throws(Failure) in
            unsafe Self.acquire(mutex)
            defer { unsafe Self.release(mutex) }
            return try unsafe body(&value.pointee)
        }
    }

    /// Puts a new value into a part. What was there is let go of outside the critical section: it may be the last reference
    /// to something that comes back here as it goes.
    public func set<Part>(_ part: WritableKeyPath<Value, Part>, to new: Part) {
        var other = new
        withLock { swap(&$0[keyPath: part], &other) }
    }

    @usableFromInline
    static func acquire(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) {
        unsafe pthread_mutex_lock(mutex)
    }

    @usableFromInline
    static func release(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) {
        unsafe pthread_mutex_unlock(mutex)
    }
}
