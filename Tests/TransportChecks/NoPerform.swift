// SPDX-License-Identifier: MIT

import ANHTTP

// `make check-transports` expects that this does not compile: nothing but its own function makes a type a transport.
struct NoPerform: Transport {
    func shutdown() async {}
}
