// SPDX-License-Identifier: MIT

import ANSystem
import Glibc

/// The types of network devices in sysfs, which tell wireless networks and modems from Ethernet. See sysfs(5).
enum DeviceTypes {
    /// The `DEVTYPE` of an interface, such as `wlan`; nil where sysfs has none.
    static func type(of interface: String) -> String? {
        // Names come from the kernel, which allows neither; a path must not leave the folder all the same.
        guard !interface.isEmpty, interface != "..", !interface.contains("/"),
            let file = try? RegularFile(path: "/sys/class/net/\(interface)/uevent")
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: 1024)
        var span = bytes.mutableSpan
        var buffer = unsafe span.mutableBytes
        guard let count = try? file.read(into: &buffer) else { return nil }
        let lines = String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n")
        return lines.first { $0.hasPrefix("DEVTYPE=") }.map { String($0.dropFirst("DEVTYPE=".count)) }
    }
}
