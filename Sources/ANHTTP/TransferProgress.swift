// SPDX-License-Identifier: MIT

/// A snapshot of the progress of a transfer in one direction, upload or download.
///
/// It is reported by ``TransferEvent/uploadProgress(_:)`` and ``TransferEvent/downloadProgress(_:)``, and by the
/// progress streams of a session's tasks.
public struct TransferProgress: Hashable, Sendable {
    /// The number of body bytes transferred so far: of a response before decompression, of a request after compression.
    ///
    /// Bytes of a request count when they are passed to libcurl for sending, and again from 0 if the body must be sent
    /// again. For a resumed download, the bytes of earlier exchanges are included.
    public var completedBytes: Int64
    /// The total number of body bytes; `nil` if it is not known for certain, as with chunked coding.
    public var totalBytes: Int64?
    /// The current speed, an average weighted towards recent measurements; `nil` if it was not measured, as in the
    /// events of a single exchange.
    public var bytesPerSecond: Double?

    /// Creates a snapshot whose ``bytesPerSecond`` is `nil`.
    ///
    /// - Parameters:
    ///   - completedBytes: The number of body bytes transferred so far.
    ///   - totalBytes: The total number of body bytes; `nil` if it is unknown.
    public init(completedBytes: Int64, totalBytes: Int64?) {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
    }

    /// The completed fraction, from 0 to 1; `nil` if the total is unknown, 1 if it is 0.
    public var fraction: Double? {
        guard let totalBytes else { return nil }
        return totalBytes <= 0 ? 1 : max(0, min(1, Double(completedBytes) / Double(totalBytes)))
    }

    /// The estimated time to the end at the current speed, at least zero; `nil` if the total is unknown, or the speed
    /// is unknown or below 1 byte per second, or the estimate is 100 hours or more.
    public var timeLeft: Duration? {
        guard let totalBytes, let bytesPerSecond, bytesPerSecond >= 1 else { return nil }
        let seconds = (Double(totalBytes) - Double(completedBytes)) / bytesPerSecond
        return seconds < 360_000 ? .seconds(max(0, seconds)) : nil
    }
}
