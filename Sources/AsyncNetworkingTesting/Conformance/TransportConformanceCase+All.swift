// SPDX-License-Identifier: MIT

extension TransportConformanceCase {
    /// All cases.
    public static let all = responses + requests + endings
}
