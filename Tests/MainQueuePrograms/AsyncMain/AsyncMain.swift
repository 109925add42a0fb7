// SPDX-License-Identifier: MIT

import AFNetworkingCallSites
import Glibc

/// A program with an asynchronous `main`: `AsyncMain URL`. It exits with status 0 when its observers have received all
/// notifications, and is terminated by SIGALRM if its main queue hangs.
@main
struct AsyncMain {
    static func main() async {
        alarm(200)
        let observers = MainQueueObservers(server: CommandLine.arguments[1])
        await withCheckedContinuation { done in observers.run { done.resume() } }
    }
}
