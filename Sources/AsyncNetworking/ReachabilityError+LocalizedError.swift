// SPDX-License-Identifier: MIT

public import ANReachability
public import FoundationEssentials

extension ReachabilityError: LocalizedError {
    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }
}
