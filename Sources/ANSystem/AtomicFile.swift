// SPDX-License-Identifier: MIT

import Glibc

/// A file that is written beside its final place and moved there when it is complete: under the final name there is the
/// whole file, or what was there before. One that is not committed is removed.
///
/// A symbolic link stays, and what it leads to is replaced. A device or a pipe, such as `/dev/null`, is written to as it
/// is.
public struct AtomicFile: ~Copyable {
    private let destination: String
    /// Where the bytes are until the file is complete; nil when they go to the destination itself.
    private var partial: PartialFile?
    /// The destination itself, where it is no file.
    private let device: FileDescriptor?
    /// The bytes written so far.
    public private(set) var size: Int64 = 0

    /// Creates a temporary file in the destination's folder.
    ///
    /// - Parameters:
    ///   - destination: The final name.
    ///   - mode: The rights of the file, from which the process's umask is taken; see open(2). 0o600 is for secrets. A file
    ///     that is replaced does not hand its rights on.
    public init(destination: String, mode: UInt32 = 0o666) throws(SystemError) {
        let place = FilePlace(destination)
        let device = try place.openDevice()
        let partial = try Self.partialFile(for: place, mode)
        self.destination = place.path
        self.device = device
        self.partial = partial
    }

    private static func partialFile(for place: FilePlace, _ mode: UInt32) throws(SystemError) -> PartialFile? {
        guard place.isReplaceable else { return nil }
        return try PartialFile(path: temporaryPath(for: place.path), opening: .new, mode: mode)
    }

    /// Appends all bytes.
    public mutating func write(_ bytes: borrowing RawSpan) throws(SystemError) {
        try device?.writeAll(bytes)
        try partial?.write(bytes)
        size += Int64(bytes.byteCount)
    }

    /// Moves the file to its final name, in place of what is there. See rename(2).
    public consuming func commit() throws(SystemError) {
        try partial?.move(to: destination)
    }

    /// A name beside a file that nothing else has.
    static func temporaryPath(for path: String) -> String {
        "\(path).\(String(UInt64.random(in: .min ... .max), radix: 36)).part"
    }
}
