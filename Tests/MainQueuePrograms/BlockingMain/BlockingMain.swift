// SPDX-License-Identifier: MIT

import AFNetworkingCallSites
import Dispatch
import Foundation

/// A program whose `main` serves the main queue and never returns: `BlockingMain URL dispatchMain` or
/// `BlockingMain URL runLoop`. It ends with 0 when its observers have heard all, and by SIGALRM when its main queue hangs.
@main
struct BlockingMain {
    static func main() {
        alarm(20)
        let observers = MainQueueObservers(server: CommandLine.arguments[1])
        observers.run { exit(0) }
        switch CommandLine.arguments[2] {
        case "dispatchMain": dispatchMain()
        case "runLoop": RunLoop.main.run()
        default: exit(2)
        }
    }
}
