// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// The parts of the system that a simulation replaces: the date, random numbers, and the results of file operations.
///
/// They are replaced for the code that runs on the thread of the simulation, and for no other.
package protocol SimulatedSystem: AnyObject {
    /// The simulated date, in milliseconds since 1970.
    var millisecondsSince1970: Int64 { get }
    /// Returns a number determined by the seed of the simulation.
    func randomBits() -> UInt64
    /// Called before an operation that opens a file, reads it at an offset, or changes it or a directory. The operation
    /// fails with the error that it throws, and is then not performed.
    func willUseFile(_ call: String, _ path: String?) throws(SystemError)
    /// Returns how many of these bytes the next write(2) accepts, at least one.
    func writableBytes(of count: Int) -> Int
}

package enum SystemSimulation {
    /// The system of the simulation whose thread this is; `nil` on other threads.
    package static var current: (any SimulatedSystem)? {
        unsafe pthread_getspecific(key).map {
            unsafe Unmanaged<Box>.fromOpaque($0).takeUnretainedValue().system
        }
    }

    /// Announces an operation on a file or directory to the simulation, if this is its thread.
    ///
    /// - Throws: The error with which the operation is to fail.
    static func willUseFile(_ call: String, _ path: String? = nil) throws(SystemError) {
        if let current { try current.willUseFile(call, path) }
    }

    /// Gives a file that was changed the date of the simulation, if this is its thread.
    static func didChange(_ file: borrowing FileDescriptor) {
        guard let times = fileTimes else { return }
        unsafe _ = futimens(file.number, times)
    }

    /// Gives a file or directory the date of the simulation, if this is its thread.
    static func didChange(_ path: String) {
        guard let times = fileTimes else { return }
        unsafe _ = utimensat(AT_FDCWD, path, times, 0)
    }

    /// The simulated date as the times of access and modification.
    private static var fileTimes: [timespec]? {
        current.map { simulation in
            let (seconds, rest) = simulation.millisecondsSince1970.quotientAndRemainder(dividingBy: 1_000)
            let time = timespec(tv_sec: Int(seconds), tv_nsec: Int(rest) * 1_000_000)
            return [time, time]
        }
    }

    /// Runs a function on this thread with a simulated system.
    package static func run<Value>(_ system: any SimulatedSystem, _ body: () -> Value) -> Value {
        let box = Box(system)
        unsafe _ = pthread_setspecific(key, Unmanaged.passUnretained(box).toOpaque())
        defer { _ = pthread_setspecific(key, nil) }
        return withExtendedLifetime(box, body)
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        unsafe pthread_key_create(&key, nil)
        return key
    }()

    private final class Box {
        let system: any SimulatedSystem

        init(_ system: any SimulatedSystem) {
            self.system = system
        }
    }
}

/// The system's date, or that of the simulation.
package enum SystemDate {
    package static var millisecondsSince1970: Int64 {
        if let simulated = SystemSimulation.current { return simulated.millisecondsSince1970 }
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// The system's random numbers, or those of the simulation.
package struct SystemRandom: RandomNumberGenerator {
    package init() {}

    package mutating func next() -> UInt64 {
        if let simulated = SystemSimulation.current { return simulated.randomBits() }
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }
}

extension FixedWidthInteger {
    /// Returns a random number from the system, or from the simulation.
    package static func systemRandom(in range: ClosedRange<Self>) -> Self {
        var generator = SystemRandom()
        return random(in: range, using: &generator)
    }
}

/// A clock that also provides the date, such as those of tests.
package protocol DatedClock {
    /// The date, in milliseconds since 1970.
    var millisecondsSince1970: Int64 { get }
}

extension Clock {
    /// The date that belongs to the clock: its own if it has one, otherwise the system's.
    package var dateInMilliseconds: Int64 {
        (self as? any DatedClock)?.millisecondsSince1970 ?? SystemDate.millisecondsSince1970
    }
}
