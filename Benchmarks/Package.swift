// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT

import PackageDescription

// A separate package, so that users of the library do not depend on the clients that it is compared with.

/// Whether AsyncNetworking is measured; its client is `Sources/OurClient`.
let measuresOurClient = true

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
    name: "Benchmarks",
    dependencies: [
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    ],
    targets: [
        .systemLibrary(name: "CurlLibrary", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),

        // The driver, the program that measures a process, and a server for some workloads.
        .executableTarget(name: "Bench", dependencies: ["ClientKit", "ServerKit"], swiftSettings: settings),
        .executableTarget(name: "Measure"),
        .executableTarget(name: "BenchServer", linkerSettings: [.linkedLibrary("crypto")]),
        .target(name: "ServerKit", dependencies: ["ClientKit"], swiftSettings: settings),

        // The clients, and what the Swift clients share.
        .executableTarget(name: "RawCurl", dependencies: ["CurlLibrary"]),
        .target(name: "ClientKit", swiftSettings: settings),
        .executableTarget(
            name: "AHCClient",
            dependencies: [
                "ClientKit",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: settings),
        .executableTarget(name: "URLSessionClient", dependencies: ["ClientKit"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)

if measuresOurClient {
    package.dependencies.append(
        .package(name: "AsyncNetworking", path: "..", traits: ["ImageDecoding", "Observability"]))
    let library = Target.Dependency.product(name: "AsyncNetworking", package: "AsyncNetworking")
    package.targets += [
        .executableTarget(name: "OurClient", dependencies: ["ClientKit", library], swiftSettings: settings),
        // The cost of a request without a network.
        .target(name: "AllocationCounter"),
        .target(name: "CostKit", dependencies: ["AllocationCounter", library], swiftSettings: settings),
        // The cost of a session on top of its transport.
        .executableTarget(
            name: "PipelineCost",
            dependencies: [
                "CostKit", library, .product(name: "AsyncNetworkingObservability", package: "AsyncNetworking"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        // The memory of metrics.
        .executableTarget(
            name: "MetricsCost",
            dependencies: [
                "ClientKit", "ServerKit", library,
                .product(name: "AsyncNetworkingObservability", package: "AsyncNetworking"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
            ],
            swiftSettings: settings),
        // The cost of requests on one and on several event loops.
        .executableTarget(
            name: "LoopCost", dependencies: ["ClientKit", "ServerKit", library], swiftSettings: settings),
        // The time for which a snapshot holds the event loop.
        .executableTarget(
            name: "SnapshotCost", dependencies: ["ClientKit", "ServerKit", library], swiftSettings: settings),
        // The cost of the response cache.
        .executableTarget(
            name: "CacheCost",
            dependencies: [
                "ClientKit", "CostKit", library, .product(name: "AsyncNetworkingTesting", package: "AsyncNetworking"),
            ],
            swiftSettings: settings),
        // The image cache and the image decoder.
        .executableTarget(
            name: "ImageCost",
            dependencies: [
                "ClientKit", "CostKit", library,
                .product(name: "AsyncNetworkingImages", package: "AsyncNetworking"),
            ],
            swiftSettings: settings),
        // The cost of AFNetworking's interface on top of the core.
        .executableTarget(
            name: "ShimCost",
            dependencies: ["CostKit", library, .product(name: "AFNetworking", package: "AsyncNetworking")],
            swiftSettings: settings),
        // The cost of server-sent events.
        .executableTarget(name: "StreamCost", dependencies: [library], swiftSettings: settings),
        // WebSocket connections.
        .executableTarget(
            name: "WebSocketCost",
            dependencies: [
                "ClientKit", "ServerKit", library,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            swiftSettings: settings),
        // The cost of forms and multipart bodies.
        .executableTarget(
            name: "SerializationCost", dependencies: ["ClientKit", "ServerKit", library], swiftSettings: settings),
    ]
}
