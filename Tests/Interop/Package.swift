// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT

import PackageDescription

// A separate package, so that a build of the library does not link these programs.

let library = Target.Dependency.product(name: "AsyncNetworking", package: "AsyncNetworking")

let package = Package(
    name: "Interop",
    dependencies: [.package(name: "AsyncNetworking", path: "../..")],
    targets: [
        // The client that `make interop` compares with the curl tool.
        .executableTarget(name: "InteropClient", dependencies: [library], path: "Client"),
        // The client of `make endurance`.
        .executableTarget(name: "Endurance", dependencies: [library], path: "Endurance"),
        // The processes of `make slow-readers`.
        .executableTarget(
            name: "SlowReaders",
            dependencies: [library, .product(name: "AsyncNetworkingTesting", package: "AsyncNetworking")],
            path: "SlowReaders"),
    ]
)
