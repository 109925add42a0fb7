// SPDX-License-Identifier: MIT

import AFNetworking

// `make check-transports` expects that this compiles in language mode 5, and not in mode 6 if warnings are errors:
// progress is reported on another queue than the main queue.
@MainActor final class Screen {
    var fraction = 0.0

    func load(_ manager: AFHTTPSessionManager) {
        manager.get(
            "x", parameters: nil, headers: nil, progress: { self.fraction = $0.fractionCompleted }, success: nil)
    }
}
