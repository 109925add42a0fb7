// SPDX-License-Identifier: MIT

import CCurl
import FoundationEssentials
import Glibc

/// The pair of sockets by which curl_multi_wakeup(3) works, and which libcurl 7.88 creates without close-on-exec,
/// so that child processes would inherit them.
enum WakeupSockets {
    /// Sets close-on-exec for the sockets of a multi handle.
    ///
    /// libcurl does not tell their numbers. They are the two sockets between which a wake-up puts a byte, which stays
    /// there: only curl_multi_poll(3) would read it. If another thread sends one byte to such a socket at the same
    /// moment, the sockets stay as they are.
    static func closeOnExec(of multi: UnsafeMutableRawPointer) {
        let idle = inheritedSockets().filter { count(Self.unread, $0) == 0 && count(Self.unsent, $0) == 0 }
        guard !idle.isEmpty, unsafe curl_multi_wakeup(multi) == CURLM_OK else { return }
        let readers = idle.filter { count(Self.unread, $0) == 1 }
        let writers = idle.filter { count(Self.unsent, $0) > 0 }
        guard readers.count == 1, writers.count == 1 else { return }
        for socket in readers + writers { _ = fcntl(socket, F_SETFD, FD_CLOEXEC) }
    }

    /// The stream sockets of the Unix domain that child processes inherit. See proc(5).
    private static func inheritedSockets() -> [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.compactMap { Int32($0) }.filter { number in
            fcntl(number, F_GETFD) == 0 && option(SO_DOMAIN, number) == AF_UNIX
                && option(SO_TYPE, number) == Int32(SOCK_STREAM.rawValue)
        }
    }

    private static func option(_ name: Int32, _ socket: Int32) -> Int32? {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
    }

    // SIOCINQ and SIOCOUTQ, see unix(7).
    private static let unread = UInt(FIONREAD)
    private static let unsent = UInt(TIOCOUTQ)

    private static func count(_ request: UInt, _ socket: Int32) -> Int32 {
        var count: Int32 = 0
        return unsafe ioctl(socket, request, &count) == 0 ? count : -1
    }
}
