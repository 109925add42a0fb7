// SPDX-License-Identifier: MIT

extension TransportConformanceCase {
    /// All conformance cases: on responses, on requests, and on the ends of exchanges.
    public static let all = responses + requests + endings
}
