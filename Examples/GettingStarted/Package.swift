// swift-tools-version: 6.3

import PackageDescription

let package = Package(
    name: "LatestRelease",
    dependencies: [
        // The address from which you cloned the library, or file:/// and the path of a clone.
        .package(url: "https://example.com/AsyncNetworking.git", branch: "main")
    ],
    targets: [
        .executableTarget(name: "LatestRelease", dependencies: ["Releases"]),
        .target(
            name: "Releases",
            dependencies: [.product(name: "AsyncNetworking", package: "AsyncNetworking")]),
        .testTarget(
            name: "ReleasesTests",
            dependencies: [
                "Releases", .product(name: "AsyncNetworkingTesting", package: "AsyncNetworking"),
            ]),
    ]
)
