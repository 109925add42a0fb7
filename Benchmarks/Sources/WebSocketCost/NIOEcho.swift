// SPDX-License-Identifier: MIT

import ClientKit
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket

/// The same measurements by swift-nio's WebSocket client with its asynchronous channels.
enum NIOEcho {
    private typealias Channel = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    static func measure(_ messages: Int, port: Int) async throws -> Echoes {
        try await connect(port: port).executeThenClose { inbound, outbound in
            // `next()` runs on the global executor, and is awaited before it is called again.
            nonisolated(unsafe) var iterator = inbound.makeAsyncIterator()
            let payload = ByteBuffer(repeating: 7, count: Echoes.size)
            @Sendable func send() async throws {
                try await outbound.write(WebSocketFrame(fin: true, opcode: .binary, maskKey: .random(), data: payload))
            }
            let single = try await Echoes.rate(messages / 10) { count in
                for _ in 0..<count {
                    try await send()
                    try expectEcho(try await iterator.next(), of: payload)
                }
            }
            let stream = try await Echoes.rate(messages) { count in
                async let sending: Void = {
                    for _ in 0..<count { try await send() }
                }()
                for _ in 0..<count { try expectEcho(try await iterator.next(), of: payload) }
                try await sending
            }
            return Echoes(single: single, stream: stream)
        }
    }

    private static func expectEcho(_ frame: WebSocketFrame?, of payload: ByteBuffer) throws {
        guard frame?.data == payload else { throw Failure("another message was echoed") }
    }

    private static func connect(port: Int) async throws -> Channel {
        let upgraded: EventLoopFuture<Channel?> = try await ClientBootstrap(
            group: .singletonMultiThreadedEventLoopGroup
        )
        .channelOption(.tcpOption(.tcp_nodelay), value: 1)
        .connect(host: "127.0.0.1", port: port) { channel in
            channel.eventLoop.makeCompletedFuture {
                let upgrader = NIOTypedWebSocketClientUpgrader<Channel?> { channel, _ in
                    channel.eventLoop.makeCompletedFuture { try Channel(wrappingChannelSynchronously: channel) }
                }
                let head = HTTPRequestHead(
                    version: .http1_1, method: .GET, uri: "/", headers: ["Host": "127.0.0.1:\(port)"])
                let upgrade = NIOTypedHTTPClientUpgradeConfiguration(
                    upgradeRequestHead: head, upgraders: [upgrader],
                    notUpgradingCompletionHandler: { $0.eventLoop.makeSucceededFuture(nil) })
                return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
                    configuration: .init(upgradeConfiguration: upgrade))
            }
        }
        guard let channel = try await upgraded.get() else { throw Failure("the upgrade was refused") }
        return channel
    }
}
