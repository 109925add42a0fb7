// SPDX-License-Identifier: MIT

import ANSystem
import Glibc

/// The device types that sysfs reports for network interfaces, which distinguish Wi-Fi and modems from Ethernet. See
/// sysfs(5).
package enum DeviceTypes {
    /// Returns the `DEVTYPE` of an interface, such as `wlan`; `nil` if sysfs has none.
    package static func type(of interface: String, in directory: String = "/sys/class/net") -> String? {
        // The kernel allows neither name; they are rejected so that the path cannot leave the directory.
        guard !interface.isEmpty, interface != "..", !interface.contains("/"),
            let file = try? RegularFile(path: "\(directory)/\(interface)/uevent")
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: 1024)
        var span = bytes.mutableSpan
        var buffer = unsafe span.mutableBytes
        guard let count = try? file.read(into: &buffer) else { return nil }
        let lines = String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n")
        return lines.first { $0.hasPrefix("DEVTYPE=") }.map { String($0.dropFirst("DEVTYPE=".count)) }
    }
}
