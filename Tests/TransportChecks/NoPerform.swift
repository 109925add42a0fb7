// SPDX-License-Identifier: MIT

import ANHTTP

// `make check-transports` expects that this does not compile: a transport must implement `perform`.
struct NoPerform: Transport {
    func shutdown() async {}
}
