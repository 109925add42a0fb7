// SPDX-License-Identifier: MIT

/// What a session knows, guarded by one lock: public functions that ask for it or change it return at once.
struct SessionState: Sendable {
    /// The hosts that require https.
    var strictTransport = HostTable<StrictTransportHost>()
    /// The alternative services that servers have offered.
    var alternativeServices = HostTable<AlternativeService>()
}
