// SPDX-License-Identifier: MIT

import AFNetworking
import Dispatch
import Testing

/// The reachability manager.
@Suite(.timeLimit(.minutes(5))) struct ReachabilityTests {
    @Test func `descriptions, raw values and keys are those of AFNetworking`() {
        let all: [AFNetworkReachabilityStatus] = [.unknown, .notReachable, .reachableViaWWAN, .reachableViaWiFi]
        #expect(all.map(\.rawValue) == [-1, 0, 1, 2])
        #expect(
            all.map(AFStringFromNetworkReachabilityStatus) == [
                "Unknown", "Not Reachable", "Reachable via WWAN", "Reachable via WiFi",
            ])
        #expect(
            NSNotification.Name.AFNetworkingReachabilityDidChange.rawValue
                == "com.alamofire.networking.reachability.change")
        #expect(AFNetworkingReachabilityNotificationStatusItem == "AFNetworkingReachabilityNotificationStatusItem")
    }

    @Test func `the status is unknown until the first report, which is delivered on the main queue`() async {
        let manager = AFNetworkReachabilityManager(forAddress: "127.0.0.1")
        #expect(manager.networkReachabilityStatus == .unknown)
        #expect(!manager.isReachable)
        let log = Log<String>()
        let posted = await callback { done in
            manager.setReachabilityStatusChange { [weak manager] status in
                log.add("block \(manager?.networkReachabilityStatus == status)")
            }
            let observer = Observer(.AFNetworkingReachabilityDidChange, of: manager) { note in
                log.add("notification")
                done(Callback(object: note.userInfo?[AFNetworkingReachabilityNotificationStatusItem]))
            }
            manager.startMonitoring()
            Observer.keep(observer)
        }
        #expect(log.entries == ["block true", "notification"])
        #expect(posted.object as? Int == 2)
        #expect(posted.isOnMainQueue)
        #expect(manager.isReachable && manager.isReachableViaWiFi && !manager.isReachableViaWWAN)
        manager.stopMonitoring()
        manager.stopMonitoring()
        #expect(manager.isReachable)
        #expect(manager.localizedNetworkReachabilityStatusString() == "Reachable via WiFi")
        #expect(AFNetworkReachabilityManager.shared() === AFNetworkReachabilityManager.shared())
    }

    @Test func `a report of monitoring that was restarted does not count`() {
        var reports = ReachabilityReports()
        let (old, new) = (reports.begin(), reports.begin())
        var counts: [Bool] = []
        counts.append(reports.receive(.reachableViaWiFi, of: new))
        counts.append(reports.receive(.notReachable, of: old))
        #expect(counts == [true, false] && reports.status == .reachableViaWiFi)
        counts.append(reports.receive(.notReachable, of: new))
        #expect(counts.last == true && reports.status == .notReachable)
    }

    @Test func `a manager without a target monitors the default route`() async {
        let manager = AFNetworkReachabilityManager()
        #expect(manager.networkReachabilityStatus == .unknown)
        let reported = await callback { done in
            manager.setReachabilityStatusChange { done(Callback(object: $0.rawValue)) }
            manager.startMonitoring()
        }
        #expect(reported.object as? Int == manager.networkReachabilityStatus.rawValue)
        manager.stopMonitoring()
    }
}
