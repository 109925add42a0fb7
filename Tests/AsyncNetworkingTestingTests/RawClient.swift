// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import Glibc
import TestSupport

/// A blocking socket client, to test the server without an HTTP library.
final class RawClient: Sendable {
    /// The descriptor of the socket, closed when the client is released.
    let number: Int32

    enum Failure: Error, Equatable {
        case connectionReset
        case ended(String)
        case system(Int32)
    }

    init(_ server: StubServer) throws {
        switch server.endpoint {
        case .tcp(let host, let port):
            let isV6 = host.contains(":")
            number = socket(isV6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            if isV6 {
                var name = sockaddr_in6()
                name.sin6_family = sa_family_t(AF_INET6)
                name.sin6_port = UInt16(port).bigEndian
                name.sin6_addr = in6addr_loopback
                try connect(to: &name)
            } else {
                var name = sockaddr_in()
                name.sin_family = sa_family_t(AF_INET)
                name.sin_port = UInt16(port).bigEndian
                name.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
                try connect(to: &name)
            }
        case .unix(let path):
            number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var name = sockaddr_un()
            name.sun_family = sa_family_t(AF_UNIX)
            unsafe withUnsafeMutableBytes(of: &name.sun_path) { unsafe $0.copyBytes(from: Array(path.utf8)) }
            try connect(to: &name)
        }
    }

    private func connect<Name>(to name: inout Name) throws {
        let code = unsafe withUnsafePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(number, $0, socklen_t(MemoryLayout<Name>.size))
            }
        }
        guard code == 0 else { throw Failure.system(errno) }
    }

    deinit {
        close(number)
    }

    func send(_ text: String) throws {
        try send(Array(text.utf8))
    }

    func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count >= 0 else { throw Failure.system(errno) }
            rest = rest.dropFirst(count)
        }
    }

    /// Sends until the buffers of both sides are full, with the smallest possible buffer on this side; returns the
    /// number of bytes sent.
    func fillBuffers() -> Int {
        var size: Int32 = 1
        unsafe setsockopt(number, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        let bytes = [UInt8](repeating: 0, count: 1024)
        var total = 0
        while true {
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return total }
            total += count
        }
    }

    /// Whether received bytes have not been read.
    var hasBytes: Bool {
        var byte: UInt8 = 0
        return unsafe recv(number, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    /// Shuts down the sending side.
    func finishSending() {
        shutdown(number, Int32(SHUT_WR))
    }

    /// Reads until the received text ends with `suffix`, and returns the text.
    func receive(upTo suffix: String) async throws -> String {
        try await blocking { [number] in
            var bytes: [UInt8] = []
            while !bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) {
                var byte: UInt8 = 0
                let count = unsafe recv(number, &byte, 1, 0)
                guard count > 0 else { throw Failure.ended(String(decoding: bytes, as: UTF8.self)) }
                bytes.append(byte)
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Reads until the connection ends, and returns the bytes and the error.
    func receiveToEnd() async throws -> (bytes: [UInt8], error: Failure?) {
        try await blocking { [number] in
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = unsafe recv(number, &buffer, buffer.count, 0)
                if count == 0 { return (bytes, nil) }
                if count < 0 { return (bytes, errno == ECONNRESET ? .connectionReset : .system(errno)) }
                bytes += buffer[..<count]
            }
        }
    }

    /// Reads on a thread of its own, until the task is cancelled.
    private func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        defer { withExtendedLifetime(self) {} }
        return try await withTaskCancellationHandler {
            try await onThread(body)
        } onCancel: {
            shutdown(number, Int32(SHUT_RDWR))
        }
    }
}
