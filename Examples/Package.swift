// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT

import PackageDescription

// A separate package, so that a build of the library does not link its examples, and that they are compiled as programs
// of users are: with the default settings of a package.

/// The examples with their products; each of them imports AsyncNetworking as well.
let examples: [String: [String]] = [
    "CachedFeed": ["AsyncNetworkingTesting"],
    "ChangeFeed": ["AsyncNetworkingTesting"],
    "ChatStream": ["AsyncNetworkingTesting"],
    "DecodeErrors": ["AsyncNetworkingTesting"],
    "DownloadDaemon": ["AsyncNetworkingTesting"],
    "DownloadWithProgress": ["AsyncNetworkingTesting"],
    "EchoSocket": ["AsyncNetworkingTesting"],
    "FromAFNetworking": ["AFNetworking", "AsyncNetworkingTesting"],
    "ImageGallery": ["AsyncNetworkingImages", "AsyncNetworkingTesting"],
    "MirrorDownload": ["AsyncNetworkingTesting"],
    "MutualTLS": ["AsyncNetworkingTesting"],
    "PinACertificate": [],
    "PostForm": ["AsyncNetworkingTesting"],
    "RecordAndReplay": ["AsyncNetworkingTesting"],
    "RefreshAToken": ["AsyncNetworkingTesting"],
    "ResumableUpload": ["AsyncNetworkingTesting"],
    "ResumeDownload": ["AsyncNetworkingTesting"],
    "RetryWithBackoff": ["AsyncNetworkingTesting"],
    "Start": [],
    "UploadMultipart": ["AsyncNetworkingTesting"],
    "UploadWithProgress": ["AsyncNetworkingTesting"],
    "WatchReachability": [],
    "WeatherSync": ["AsyncNetworkingTesting"],
]

/// The programs of the article "Recipes" that tests run.
let recipes = ["LimitTheSpeed", "LogIn", "PageThrough", "ServeUntilSIGTERM"]

let package = Package(
    name: "Examples",
    dependencies: [
        .package(name: "AsyncNetworking", path: "..", traits: ["Observability"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: examples.keys.sorted().map { name in
        .executableTarget(
            name: name,
            dependencies: (["AsyncNetworking"] + (examples[name] ?? [])).map {
                .product(name: $0, package: "AsyncNetworking")
            },
            path: name)
    }
        + [
            // A service with the packages of the trait Observability.
            .executableTarget(
                name: "ObservedService",
                dependencies: [
                    .product(name: "AsyncNetworking", package: "AsyncNetworking"),
                    .product(name: "AsyncNetworkingObservability", package: "AsyncNetworking"),
                    .product(name: "Hummingbird", package: "hummingbird"),
                    .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                    .product(name: "Logging", package: "swift-log"),
                    .product(name: "Metrics", package: "swift-metrics"),
                    .product(name: "MetricsTestKit", package: "swift-metrics"),
                    .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                    .product(name: "Tracing", package: "swift-distributed-tracing"),
                ],
                path: "ObservedService"),
            // The samples of the documentation, so that tests can run them.
            .target(
                name: "Samples",
                dependencies: [
                    "AFNetworking", "AsyncNetworking", "AsyncNetworkingImages", "AsyncNetworkingTesting",
                    "AsyncNetworkingXML",
                ].map { .product(name: $0, package: "AsyncNetworking") },
                path: "Samples"),
            // The package of the article "Getting started", which depends on the library by its address.
            .target(
                name: "Releases", dependencies: [.product(name: "AsyncNetworking", package: "AsyncNetworking")],
                path: "GettingStarted/Sources/Releases"),
            .executableTarget(
                name: "LatestRelease", dependencies: ["Releases"], path: "GettingStarted/Sources/LatestRelease"),
            .testTarget(
                name: "ReleasesTests",
                dependencies: ["Releases", .product(name: "AsyncNetworkingTesting", package: "AsyncNetworking")],
                path: "GettingStarted/Tests/ReleasesTests"),
            .testTarget(
                name: "ExamplesTests",
                dependencies: (examples.keys.sorted() + recipes + ["ObservedService", "Samples"]).map {
                    .byName(name: $0)
                } + [
                    .product(name: "AsyncNetworkingImages", package: "AsyncNetworking"),
                    .product(name: "AsyncNetworkingTesting", package: "AsyncNetworking"),
                ],
                path: "Tests"),
        ]
        + recipes.map { name in
            .executableTarget(
                name: name, dependencies: [.product(name: "AsyncNetworking", package: "AsyncNetworking")],
                path: "Recipes", sources: ["\(name).swift"])
        }
)
