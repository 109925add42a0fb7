// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT

import PackageDescription

// A separate package, because a test of the library's own package would have all of its tests built with the trait.

let package = Package(
    name: "ImageDecoding",
    dependencies: [.package(name: "AsyncNetworking", path: "../..", traits: ["ImageDecoding"])],
    targets: [
        .testTarget(
            name: "ImageDecodingTests",
            dependencies: [
                .product(name: "AsyncNetworkingImages", package: "AsyncNetworking"),
                .product(name: "AFNetworking", package: "AsyncNetworking"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
