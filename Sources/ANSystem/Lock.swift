// SPDX-License-Identifier: MIT

public import Glibc

/// A value protected by a mutex.
///
/// It uses `pthread_mutex_t`, which ThreadSanitizer understands; with `Synchronization.Mutex` it reports false races on
/// Linux. Copies share the lock and the value, which have one allocation and a stable address. A lock that protects no
/// value has `false`, not `()`, for whose address ThreadSanitizer takes that of what follows.
///
/// Critical sections must be short and must not call unknown code: the mutex is neither recursive nor fair.
@safe public struct Lock<Value: Sendable>: @unchecked Sendable {
    @usableFromInline let storage: Storage

    /// The allocation that holds the value and its mutex.
    @safe @usableFromInline final class Storage: ManagedBuffer<Value, pthread_mutex_t> {
        deinit {
            _ = unsafe withUnsafeMutablePointerToElements { unsafe pthread_mutex_destroy($0) }
        }
    }

    /// Creates an unlocked lock that protects `value`.
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

    /// Runs `body` with exclusive access to the value, and returns its result or throws its error. Blocks until the
    /// lock is free; a nested call for the same lock deadlocks.
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

    /// Replaces a part of the value, all of it by `\.self`, and returns the old part. Blocks until the lock is free; a
    /// call within ``withLock(_:)`` of the same lock deadlocks.
    ///
    /// The old part is released after the critical section: it may be the last reference to an object whose `deinit`
    /// uses this lock.
    @discardableResult
    public func set<Part>(_ part: WritableKeyPath<Value, Part>, to new: Part) -> Part {
        var other = new
        withLock { swap(&$0[keyPath: part], &other) }
        return other
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

/// A callback that is called once: with the first value that it is given, or with the fallback when it is freed without
/// one.
package final class OneShot<Value: Sendable>: Sendable {
    private let callback: Lock<(@Sendable (Value) -> Void)?>
    private let fallback: Value

    /// Creates a callback with the value for when it is freed uncalled.
    package init(fallback: Value, _ callback: @escaping @Sendable (Value) -> Void) {
        self.callback = Lock(callback)
        self.fallback = fallback
    }

    deinit {
        call(fallback)
    }

    /// Passes a value to the callback. Has no effect after the first call.
    package func call(_ value: Value) {
        callback.set(\.self, to: nil)?(value)
    }
}
