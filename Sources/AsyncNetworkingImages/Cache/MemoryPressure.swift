// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

/// Notifications of memory pressure, as an asynchronous sequence of `Void` elements.
///
/// By default, each of them empties an ``AutoPurgingImageCache``.
///
/// At intervals, the sequence reads the kernel's pressure stall information (`Documentation/accounting/psi.rst`) of the
/// process's control group (version 2) if available, otherwise of the system. It yields an element if tasks waited for
/// memory for more than a tenth of the interval since the last reading. It ends if the information is not available at the
/// beginning, as with a kernel before 4.20, or the iterating task is cancelled. Each iterator reads on its own, and only
/// while its next element is awaited.
public struct MemoryPressure: AsyncSequence, Sendable {
    private let interval: Duration
    private let clock: any Clock<Duration>
    private let stallTime: @Sendable () -> Duration?

    /// Creates a sequence for the control group to which the process belongs now.
    ///
    /// The pressure is first read when an iterator's first element is awaited.
    ///
    /// - Parameter interval: The time between two readings; 2 seconds by default, the interval at which the kernel
    ///   updates its averages. It must be positive: with 0 or less, the files are read without a pause.
    public init(interval: Duration = .seconds(2)) {
        // The totals of two files are not comparable.
        let file = Self.files().first { Self.stallTime(in: $0) != nil }
        self.init(interval: interval, clock: ContinuousClock()) { file.flatMap(Self.stallTime(in:)) }
    }

    /// Creates the sequence.
    ///
    /// - Parameters:
    ///   - interval: The time between two readings.
    ///   - clock: The clock for the interval.
    ///   - stallTime: Returns the total time for which some task waited for memory; `nil` if it is not available.
    package init(
        interval: Duration, clock: any Clock<Duration>, stallTime: @escaping @Sendable () -> Duration?
    ) {
        self.interval = interval
        self.clock = clock
        self.stallTime = stallTime
    }

    /// Returns a new iterator, whose observation begins with the first call of ``Iterator/next()``.
    public func makeAsyncIterator() -> Iterator {
        Iterator(sequence: self)
    }

    /// An iterator over notifications of memory pressure.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let sequence: MemoryPressure
        private var last: Duration?

        fileprivate init(sequence: MemoryPressure) {
            self.sequence = sequence
        }

        /// Waits until a reading shows memory pressure, for at least one interval unless it returns `nil`.
        ///
        /// - Returns: An empty value under memory pressure; `nil` if the pressure cannot be observed, or as soon as the
        ///   calling task is cancelled.
        public mutating func next() async -> Void? {
            if last == nil { last = sequence.stallTime() }
            while let before = last {
                do {
                    try await sequence.clock.sleep(for: sequence.interval.bounded)
                } catch {
                    return nil
                }
                // Without free descriptors, the file cannot be opened for a while.
                guard let now = sequence.stallTime() else { continue }
                last = now
                if (now - before) * 10 > sequence.interval { return () }
            }
            return nil
        }
    }

    // MARK: The kernel's files

    /// The files with the pressure of the process's control group (version 2), and of the system.
    private static func files() -> [String] {
        let groups = (try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8)) ?? ""
        let group = groups.split(separator: "\n").first { $0.hasPrefix("0::") }?.dropFirst(3)
        let own = group.map { "/sys/fs/cgroup\($0 == "/" ? "" : $0)/memory.pressure" }
        return [own, "/proc/pressure/memory"].compactMap(\.self)
    }

    /// Returns the total time for which some task waited, according to a file; `nil` if the file has none.
    package static func stallTime(in file: String) -> Duration? {
        (try? String(contentsOfFile: file, encoding: .utf8)).flatMap(stallTime(inText:))
    }

    /// Returns the field `total` of the line `some`, in microseconds.
    package static func stallTime(inText text: String) -> Duration? {
        text.split(separator: "\n").first { $0.hasPrefix("some ") }?
            .split(separator: " ").first { $0.hasPrefix("total=") }
            .flatMap { Int64($0.dropFirst(6)) }.map { .microseconds($0) }
    }
}
