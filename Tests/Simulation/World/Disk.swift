// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
package import FoundationEssentials

/// The names and the bytes of a program's files that a crash leaves.
///
/// | not flushed | the program is killed | the power fails |
/// |---|---|---|
/// | a name that was created, moved or removed since fsync(2) of its directory | stays so | each change by chance, or only the first ones |
/// | bytes written, or the size changed, since fdatasync(2) of the file | stay | each block by chance; the old size, the new one, or one between |
/// | bytes that were not written again since fdatasync(2) has failed | are lost | are lost |
package struct Disk: Sendable {
    /// A file, whatever its names.
    package struct File: Hashable, Sendable {
        package var number: Int
        package var mode: Int
        package var data: Data

        package init(number: Int, mode: Int = 0o600, data: Data) {
            (self.number, self.mode, self.data) = (number, mode, data)
        }
    }

    package init() {}

    /// The names that the program has seen last, and those on the disk, which `changes` have not reached.
    private var seen: [String: Int] = [:]
    private var names: [String: Int] = [:]
    private var changes: [Change] = []
    /// The bytes after the last flush of each file, and what was seen last of those without a name.
    private var flushed: [Int: Data] = [:]
    private var nameless: [Int: File] = [:]
    /// The files whose last flush failed, and whether something was written since: if not, the next flush reports
    /// success although the bytes are lost.
    private var failed: [Int: Bool] = [:]

    /// A change of names in a directory, which is done or not.
    private struct Change {
        let directory: String
        let name: String
        /// The file that has the name then; `nil` if none has.
        let number: Int?
        /// The name that the file had before.
        var old: String?
    }

    // MARK: The program

    /// Notes the names in a directory, with at most one change since they were noted last.
    package mutating func note(_ now: [String: Int], in directory: String) {
        let before = seen.filter { Self.directory(of: $0.key) == directory }
        let gone = before.keys.filter { now[$0] == nil }
        for (name, number) in now where before[name] != number {
            let old = gone.first { before[$0] == number }
            changes.append(Change(directory: directory, name: name, number: number, old: old))
        }
        for name in gone where !now.values.contains(before[name] ?? 0) {
            changes.append(Change(directory: directory, name: name, number: nil))
        }
        for name in gone { seen[name] = nil }
        seen.merge(now) { $1 }
    }

    /// Notes a file that is about to lose a name, which it may have again after a power failure.
    package mutating func willLoseName(_ file: File) { nameless[file.number] = file }

    /// Notes that bytes of any file are written.
    package mutating func write() { failed = failed.mapValues { _ in true } }

    /// Notes a flush of a file.
    package mutating func flush(_ file: File, fails: Bool) {
        if fails {
            failed[file.number] = false
        } else if failed[file.number] != false {
            (failed[file.number], flushed[file.number]) = (nil, file.data)
        }
    }

    /// Notes a flush of a directory.
    package mutating func flush(directory: String) {
        for change in changes where change.directory == directory { Self.perform(change, on: &names) }
        changes.removeAll { $0.directory == directory }
    }

    // MARK: The crash

    /// Returns what is left of the files when the program is killed.
    package func remains(of files: [String: File]) -> [String: File] {
        files.mapValues { file in
            guard failed[file.number] != nil else { return file }
            let flushed = flushed[file.number] ?? Data()
            var file = file
            file.data = Data(file.data.enumerated().map { $0 < flushed.count && flushed[$0] == $1 ? $1 : 0 })
            return file
        }
    }

    /// Returns what is left of the files when the power fails.
    package func remains(
        of files: [String: File], afterPowerFailure random: inout some RandomNumberGenerator
    ) -> [String: File] {
        var names = names
        // Most file systems write the changes in their order.
        let count = Bool.random(using: &random) ? Int.random(in: 0...changes.count, using: &random) : nil
        for (index, change) in changes.enumerated() {
            let isDone = Bool.random(using: &random)
            if count.map({ index < $0 }) ?? isDone { Self.perform(change, on: &names) }
        }
        let seen = Dictionary(remains(of: files).values.map { ($0.number, $0) }) { first, _ in first }
        var left: [Int: File] = [:]
        // In an order that does not depend on the numbers.
        for (_, number) in names.sorted(by: { $0.key < $1.key }) where left[number] == nil {
            guard var file = seen[number] ?? nameless[number] else { continue }
            // The length of one file, which may have numbers of the system, has no effect on others.
            var own = SplitMix64(seed: .random(in: 0...UInt64.max, using: &random))
            file.data = mix(file.data, with: flushed[number] ?? Data(), &own)
            left[number] = file
        }
        return names.compactMapValues { left[$0] }
    }

    private static func perform(_ change: Change, on names: inout [String: Int]) {
        if let old = change.old, names[old] == change.number { names[old] = nil }
        names[change.name] = change.number
    }

    /// Returns a file of which some blocks are as they were flushed last.
    private func mix(_ new: Data, with old: Data, _ random: inout some RandomNumberGenerator) -> Data {
        let sizes = [old.count, new.count].sorted()
        let size = [old.count, new.count, Int.random(in: sizes[0]...sizes[1], using: &random)]
        var data = Data(count: size[Int.random(in: 0...2, using: &random)])
        for start in stride(from: 0, to: data.count, by: Self.blockSize) {
            let isNew = Bool.random(using: &random) && start < new.count
            let source = isNew ? new : old
            let block = source.dropFirst(start).prefix(min(Self.blockSize, data.count - start))
            data.replaceSubrange(start..<start + block.count, with: block)
        }
        return data
    }

    private static let blockSize = 64

    private static func directory(of name: String) -> Substring {
        name.lastIndex(of: "/").map { name[..<$0] } ?? ""
    }
}
