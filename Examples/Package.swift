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
    "MutualTLS": ["AsyncNetworkingTesting"],
    "PinACertificate": [],
    "PostForm": ["AsyncNetworkingTesting"],
    "RecordAndReplay": ["AsyncNetworkingTesting"],
    "RefreshAToken": ["AsyncNetworkingTesting"],
    "ResumeDownload": ["AsyncNetworkingTesting"],
    "RetryWithBackoff": ["AsyncNetworkingTesting"],
    "Start": [],
    "UploadMultipart": ["AsyncNetworkingTesting"],
    "UploadWithProgress": ["AsyncNetworkingTesting"],
    "WatchReachability": [],
    "WeatherSync": ["AsyncNetworkingTesting"],
]

let package = Package(
    name: "Examples",
    dependencies: [.package(name: "AsyncNetworking", path: "..")],
    targets: examples.keys.sorted().map { name in
        .executableTarget(
            name: name,
            dependencies: (["AsyncNetworking"] + (examples[name] ?? [])).map {
                .product(name: $0, package: "AsyncNetworking")
            },
            path: name)
    }
        + [
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
                dependencies: examples.keys.sorted().map { .byName(name: $0) } + [
                    .product(name: "AsyncNetworkingImages", package: "AsyncNetworking")
                ],
                path: "Tests"),
        ]
)
