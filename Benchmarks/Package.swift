// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT

import PackageDescription

// A package of its own, so that what the library is compared with reaches no user of the library.

/// Whether this library takes part: its client is `Sources/OurClient`.
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
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    ],
    targets: [
        .systemLibrary(name: "CurlLibrary", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),

        // The driver, the process that it measures with, and a server that it needs.
        .executableTarget(name: "Bench", dependencies: ["ClientKit", "ServerKit"], swiftSettings: settings),
        .executableTarget(name: "Measure"),
        .executableTarget(name: "BenchServer"),
        .target(name: "ServerKit", dependencies: ["ClientKit"], swiftSettings: settings),

        // The clients, and what those in Swift have in common.
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
    package.dependencies.append(.package(name: "AsyncNetworking", path: ".."))
    let library = Target.Dependency.product(name: "AsyncNetworking", package: "AsyncNetworking")
    package.targets += [
        .executableTarget(name: "OurClient", dependencies: ["ClientKit", library], swiftSettings: settings),
        // What a request takes without a network.
        .target(name: "AllocationCounter"),
        .target(name: "CostKit", dependencies: ["AllocationCounter", library], swiftSettings: settings),
        // What a session adds to its transport.
        .executableTarget(name: "PipelineCost", dependencies: ["CostKit", library], swiftSettings: settings),
        // What AFNetworking's interface adds to the core.
        .executableTarget(
            name: "ShimCost",
            dependencies: ["CostKit", library, .product(name: "AFNetworking", package: "AsyncNetworking")],
            swiftSettings: settings),
        // Forms and multipart bodies.
        .executableTarget(
            name: "SerializationCost", dependencies: ["ClientKit", "ServerKit", library], swiftSettings: settings),
    ]
}
