// SPDX-License-Identifier: MIT

import AFNetworkingCallSites
import Glibc

/// A program whose `main` is asynchronous: `AsyncMain URL`. It ends with 0 when its observers have heard all, and by SIGALRM
/// when its main queue hangs.
@main
struct AsyncMain {
    static func main() async {
        alarm(20)
        let observers = MainQueueObservers(server: CommandLine.arguments[1])
        await withCheckedContinuation { done in observers.run { done.resume() } }
    }
}
