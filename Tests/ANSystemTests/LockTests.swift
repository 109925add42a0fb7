// SPDX-License-Identifier: MIT

import ANSystem
import Testing

@Suite struct LockTests {
    @Test func `no increment is lost under contention`() async {
        let lock = Lock(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<10_000 { lock.withLock { $0 += 1 } } }
            }
        }
        #expect(lock.withLock { $0 } == 80_000)
    }

    @Test func `two values that change together are observed together`() async {
        let lock = Lock((left: 0, right: 0))
        let mismatches = await withTaskGroup(of: Int.self) { group in
            group.addTask {
                for number in 1...20_000 { lock.withLock { $0 = (number, -number) } }
                return 0
            }
            group.addTask {
                (0..<20_000).count { _ in lock.withLock { $0.left + $0.right != 0 } }
            }
            return await group.reduce(0, +)
        }
        #expect(mismatches == 0)
    }

    @Test func `the body's error is rethrown with its type, and earlier changes are kept`() throws {
        struct Refusal: Error, Equatable {}
        let lock = Lock([1])
        #expect(throws: Refusal()) {
            try lock.withLock { value throws(Refusal) in
                value.append(2)
                throw Refusal()
            }
        }
        #expect(lock.withLock { $0 } == [1, 2])
    }

    @Test func `the value is changed in place, without a copy`() {
        let lock = Lock([UInt8](repeating: 0, count: 1000))
        func address() -> Int { lock.withLock { unsafe $0.withUnsafeBytes { Int(bitPattern: $0.baseAddress) } } }
        let before = address()
        for index in 0..<1000 { lock.withLock { $0[index] = 1 } }
        #expect(address() == before)
    }

    @Test func `the value is freed with the lock`() {
        final class Guarded: Sendable {}
        weak var guarded: Guarded?
        do {
            let value = Guarded()
            guarded = value
            let lock = Lock(value)
            #expect(lock.withLock { $0 === value })
        }
        #expect(guarded == nil)
    }
}
