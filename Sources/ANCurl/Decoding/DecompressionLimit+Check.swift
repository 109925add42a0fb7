// SPDX-License-Identifier: MIT

package import ANHTTP

extension DecompressionLimit {
    /// Returns the bound exceeded by `decoded` bytes unpacked from `received` ones; `nil` if they are within the limit.
    ///
    /// A ratio below 1 counts as 1.
    package func bound(passedBy decoded: Int, from received: Int) -> TransportError.SizeLimit? {
        if let maximumSize, decoded > maximumSize { return .decompressed(limit: maximumSize) }
        guard let maximumRatio, decoded > ratioThreshold else { return nil }
        let (most, overflows) = received.multipliedReportingOverflow(by: max(1, maximumRatio))
        return !overflows && decoded > most ? .decompressionRatio(limit: maximumRatio) : nil
    }
}
