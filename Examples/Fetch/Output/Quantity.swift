// SPDX-License-Identifier: MIT

/// Quantities in human-readable form.
package enum Quantity {
    /// Returns a number of bytes as `999 B`, `1.0 kB` or `12.3 MB`, in powers of 1000.
    package static func bytes(_ count: Int64) -> String {
        guard count >= 1000 else { return "\(max(0, count)) B" }
        var value = Double(count) / 1000
        var unit = "kB"
        for larger in ["MB", "GB", "TB", "PB", "EB"] where value >= 999.95 {
            value /= 1000
            unit = larger
        }
        return "\(decimal(value)) \(unit)"
    }

    /// Returns a speed such as `12.3 MB/s`.
    package static func rate(_ bytesPerSecond: Double) -> String {
        bytes(Int64(min(max(0, bytesPerSecond), 9e18))) + "/s"
    }

    /// Returns a duration as `0:07`, `12:34` or `1:02:03`: whole seconds, rounded up.
    package static func clock(_ duration: Duration) -> String {
        let (whole, rest) = duration.components
        let seconds = max(0, whole) + (rest > 0 && whole >= 0 ? 1 : 0)
        let tail = ":" + padded(seconds % 60)
        return seconds < 3600 ? "\(seconds / 60)" + tail : "\(seconds / 3600):" + padded(seconds / 60 % 60) + tail
    }

    /// Returns a duration such as `0.4 ms`, `31.5 ms` or `1.2 s`.
    package static func time(_ duration: Duration) -> String {
        let seconds = max(0, duration / .seconds(1))
        return seconds < 0.99995 ? decimal(seconds * 1000) + " ms" : decimal(seconds) + " s"
    }

    /// Returns a nonnegative number with one decimal place.
    private static func decimal(_ value: Double) -> String {
        let tenths = Int64(min(value * 10, 9e17).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func padded(_ number: Int64) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
