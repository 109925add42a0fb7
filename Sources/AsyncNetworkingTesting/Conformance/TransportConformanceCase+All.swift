// SPDX-License-Identifier: MIT

extension TransportConformanceCase {
    /// All conformance cases.
    public static let all = responses + requests + endings
}
