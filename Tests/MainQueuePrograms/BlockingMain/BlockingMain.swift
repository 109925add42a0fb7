// SPDX-License-Identifier: MIT

import AFNetworkingCallSites
import Dispatch
import Foundation

/// A program with a `main` that serves the main queue and never returns: `BlockingMain URL dispatchMain` or
/// `BlockingMain URL runLoop`. It exits with status 0 when its observers have received all notifications, and is
/// terminated by SIGALRM if its main queue hangs.
@main
struct BlockingMain {
    static func main() {
        alarm(200)
        let observers = MainQueueObservers(server: CommandLine.arguments[1])
        observers.run { exit(0) }
        switch CommandLine.arguments[2] {
        case "dispatchMain": dispatchMain()
        case "runLoop": RunLoop.main.run()
        default: exit(2)
        }
    }
}
