// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT

import PackageDescription

let settings: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
]

let observability = TargetDependencyCondition.when(traits: ["Observability"])
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")

let structuredFields = Target.Dependency.product(
    name: "RawStructuredFieldValues", package: "swift-http-structured-headers")

let package = Package(
    name: "AsyncNetworking",
    products: [
        .library(name: "AsyncNetworking", targets: ["AsyncNetworking"]),
        .library(name: "AFNetworking", targets: ["AFNetworking"]),
        .library(name: "AsyncNetworkingXML", targets: ["AsyncNetworkingXML"]),
        .library(name: "AsyncNetworkingImages", targets: ["AsyncNetworkingImages"]),
        .library(name: "AsyncNetworkingObservability", targets: ["AsyncNetworkingObservability"]),
        .library(name: "AsyncNetworkingTesting", targets: ["AsyncNetworkingTesting"]),
    ],
    traits: [
        .trait(
            name: "MigrationHints",
            description: "Deprecates AFNetworking's functions with callbacks and names their replacements."),
        .trait(
            name: "Observability",
            description: "Fetches the packages of AsyncNetworkingObservability: logs, metrics, traces, services."),
        .trait(name: "ImageDecoding", description: "Decodes images with libvips (libvips-dev)."),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        // Fetched only with the trait Observability.
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // Layer 1: C libraries.
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CZlib"),
        .systemLibrary(name: "CDecoders"),
        // Used only with the trait ImageDecoding.
        .systemLibrary(name: "CVips", pkgConfig: "vips", providers: [.apt(["libvips-dev"])]),

        // Layer 2: values and the Transport protocol; the event loop.
        .target(
            name: "ANSystem", dependencies: ["CDecoders", "CLinux", "COpenSSL", "CZlib"], swiftSettings: settings),
        .target(name: "ANHTTP", dependencies: [structuredFields, httpTypes], swiftSettings: settings),

        // Layer 3: serialization; libcurl; netlink; the response cache.
        .target(name: "ANSerialization", dependencies: ["ANHTTP", "ANSystem", httpTypes], swiftSettings: settings),
        .target(
            name: "ANCurl", dependencies: ["ANHTTP", "ANSystem", "CCurl", "CLinux", "COpenSSL", httpTypes],
            swiftSettings: settings),

        .target(name: "ANReachability", dependencies: ["ANSystem", "CLinux"], swiftSettings: settings),

        .target(name: "ANCache", dependencies: ["ANHTTP", "ANSystem", httpTypes], swiftSettings: settings),

        // Layer 4: the session.
        .target(
            name: "AsyncNetworking",
            dependencies: ["ANCache", "ANHTTP", "ANSerialization", "ANCurl", "ANReachability", "ANSystem", httpTypes],
            swiftSettings: settings),

        // Layer 5: products for particular uses.
        .target(
            name: "AFNetworking",
            dependencies: ["AsyncNetworking", "AsyncNetworkingImages", "AsyncNetworkingXML", "ANSystem", httpTypes],
            swiftSettings: settings),
        .target(name: "AsyncNetworkingXML", dependencies: ["AsyncNetworking", "ANSystem"], swiftSettings: settings),
        .target(
            name: "AsyncNetworkingImages",
            dependencies: [
                "AsyncNetworking", "ANSystem", .target(name: "CVips", condition: .when(traits: ["ImageDecoding"])),
            ],
            swiftSettings: settings),

        // Empty without the trait Observability.
        .target(
            name: "AsyncNetworkingObservability",
            dependencies: [
                "AsyncNetworking", "ANSystem", httpTypes,
                .product(name: "CoreMetrics", package: "swift-metrics", condition: observability),
                .product(name: "Logging", package: "swift-log", condition: observability),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: observability),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: observability),
            ],
            swiftSettings: settings),

        // Beside the layers: test support for this package and its users.
        .target(
            name: "AsyncNetworkingTesting", dependencies: ["ANHTTP", "ANSystem", "CLinux", "COpenSSL", httpTypes],
            swiftSettings: settings),

        // The tool of `make demo`. The other examples are a package of their own, in Examples.
        .executableTarget(
            name: "Fetch",
            dependencies: [
                "AsyncNetworking", "AsyncNetworkingTesting", httpTypes,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Examples/Fetch", swiftSettings: settings),
        .executableTarget(
            name: "RouteBench", dependencies: ["ANReachability"], path: "Benchmarks/Sources/RouteBench",
            swiftSettings: settings),

        // Programs that tests run, and the number of tests that run at a time.
        .target(name: "CTestSupport", path: "Tests/CTestSupport"),
        .target(
            name: "TestSupport", dependencies: ["ANSystem", "CTestSupport"], path: "Tests/TestSupport",
            swiftSettings: settings),

        // The parsers that `make fuzz` tests, and the program that it runs.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "ANCache", "ANCurl", "ANHTTP", "ANReachability", "ANSerialization", "ANSystem", "AsyncNetworking",
                "AsyncNetworkingImages", "AsyncNetworkingTesting", "AsyncNetworkingXML", httpTypes,
            ],
            path: "Tests/Fuzz/Targets", swiftSettings: settings),
        .executableTarget(
            name: "Fuzz", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Driver", swiftSettings: settings),
        .testTarget(name: "FuzzTests", dependencies: ["FuzzTargets"], swiftSettings: settings),

        .testTarget(name: "ANSystemTests", dependencies: ["ANSystem", "TestSupport"], swiftSettings: settings),
        .testTarget(name: "ANHTTPTests", dependencies: ["ANHTTP", httpTypes], swiftSettings: settings),
        .testTarget(
            name: "ANSerializationTests",
            dependencies: [
                "ANSerialization", "ANHTTP", "ANSystem", "AsyncNetworkingTesting", "TestSupport", httpTypes,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "ANCurlTests",
            dependencies: [
                "ANCurl", "ANHTTP", "ANSystem", "AsyncNetworkingTesting", "CCurl", "TestSupport", httpTypes,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "ANReachabilityTests",
            dependencies: ["ANReachability", "ANSystem", "AsyncNetworkingTesting", "CLinux", "TestSupport"],
            exclude: ["Recordings"],
            swiftSettings: settings),
        // A program that stores responses until it is killed, for ANCacheTests.
        .executableTarget(
            name: "CacheWriter", dependencies: ["ANCache", "ANHTTP", httpTypes], path: "Tests/CacheWriter",
            swiftSettings: settings),
        .testTarget(
            name: "ANCacheTests",
            dependencies: ["ANCache", "ANHTTP", "ANSystem", "CacheWriter", "TestSupport", httpTypes],
            swiftSettings: settings),
        // The processes that `make check-kills` kills.
        .executableTarget(
            name: "DownloadKills",
            dependencies: ["ANHTTP", "ANSystem", "AsyncNetworking", "AsyncNetworkingTesting", "TestSupport"],
            path: "Tests/DownloadKills", swiftSettings: settings),
        .testTarget(
            name: "AsyncNetworkingTests",
            dependencies: [
                "ANCache", "ANCurl", "ANSystem", "AsyncNetworking", "AsyncNetworkingTesting", "TestSupport", httpTypes,
            ],
            swiftSettings: settings),
        // Callers of the library that are isolated to the main actor, without the settings of this package.
        .target(
            name: "PlainCallers", dependencies: ["AsyncNetworking", "AsyncNetworkingTesting", httpTypes],
            path: "Tests/Callers/Plain"),
        .target(
            name: "MainActorCallers", dependencies: ["AsyncNetworking", "AsyncNetworkingTesting", httpTypes],
            path: "Tests/Callers/MainActor", swiftSettings: [.defaultIsolation(MainActor.self)]),
        // Code as users of AFNetworking write it, in language mode 5 and without the settings of this package.
        .target(
            name: "AFNetworkingCallSites", dependencies: ["AFNetworking"], path: "Tests/AFNetworkingCallSites",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        // Callers in language mode 6, without the settings of this package, and with the main actor as the default.
        .target(name: "AFNetworkingCallers", dependencies: ["AFNetworking"], path: "Tests/AFNetworkingCallers/Plain"),
        .target(
            name: "AFNetworkingMainActorCallers", dependencies: ["AFNetworking"],
            path: "Tests/AFNetworkingCallers/MainActor", swiftSettings: [.defaultIsolation(MainActor.self)]),
        // Programs that serve the main queue in different ways, for AFNetworkingTests.
        .executableTarget(
            name: "AsyncMain", dependencies: ["AFNetworkingCallSites"], path: "Tests/MainQueuePrograms/AsyncMain",
            swiftSettings: settings),
        .executableTarget(
            name: "BlockingMain", dependencies: ["AFNetworkingCallSites"], path: "Tests/MainQueuePrograms/BlockingMain",
            swiftSettings: settings),
        .testTarget(
            name: "AFNetworkingTests",
            dependencies: [
                "AFNetworking", "AFNetworkingCallSites", "AFNetworkingCallers", "AFNetworkingMainActorCallers",
                "AsyncMain", "AsyncNetworking", "AsyncNetworkingImages",
                "AsyncNetworkingTesting", "ANSystem", "BlockingMain", "TestSupport", httpTypes,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "AsyncNetworkingXMLTests",
            dependencies: [
                "AsyncNetworkingXML", "AsyncNetworking", "AsyncNetworkingTesting", "FuzzTargets", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "AsyncNetworkingImagesTests",
            dependencies: [
                "AFNetworking", "AsyncNetworkingImages", "AsyncNetworking", "AsyncNetworkingTesting", "ANSystem",
                "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "AsyncNetworkingObservabilityTests",
            dependencies: [
                "AsyncNetworkingObservability", "AsyncNetworking", "AsyncNetworkingTesting", "TestSupport", httpTypes,
                .product(name: "CoreMetrics", package: "swift-metrics", condition: observability),
                .product(name: "InMemoryLogging", package: "swift-log", condition: observability),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing", condition: observability),
                .product(name: "Logging", package: "swift-log", condition: observability),
                .product(name: "MetricsTestKit", package: "swift-metrics", condition: observability),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: observability),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle", condition: observability),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: observability),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "AsyncNetworkingTestingTests",
            dependencies: ["AsyncNetworkingTesting", "ANHTTP", "TestSupport", httpTypes], swiftSettings: settings),
        .testTarget(
            name: "FetchTests",
            dependencies: [
                "Fetch", "AsyncNetworking", "AsyncNetworkingTesting", "TestSupport", httpTypes,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
        // The simulated world of `make simulate`, the program that it runs, and fixed seeds.
        .target(
            name: "SimulationWorld",
            dependencies: [
                "ANCache", "ANHTTP", "ANReachability", "ANSystem", "AsyncNetworking", "AsyncNetworkingTesting",
                httpTypes,
            ],
            path: "Tests/Simulation/World", swiftSettings: settings),
        .executableTarget(
            name: "Simulate", dependencies: ["SimulationWorld"], path: "Tests/Simulation/Driver",
            swiftSettings: settings),
        .testTarget(
            name: "SimulationTests", dependencies: ["Simulate", "SimulationWorld", "TestSupport"],
            swiftSettings: settings),
        .testTarget(name: "HouseTests", dependencies: ["TestSupport", httpTypes], swiftSettings: settings),
        .testTarget(
            name: "RealServerTests",
            dependencies: [
                "AsyncNetworking", "AFNetworking", "AsyncNetworkingTesting", "ANCurl", "ANHTTP", "TestSupport",
                httpTypes,
            ],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)

// With TESTS_OF=ANHTTP, only the tests of that module and the targets on which they depend are built.
if let module = Context.environment["TESTS_OF"] {
    let targets = Dictionary(uniqueKeysWithValues: package.targets.map { ($0.name, $0) })
    var needed: Set<String> = []
    func add(_ name: String) {
        guard let target = targets[name], needed.insert(name).inserted else { return }
        for dependency in target.dependencies {
            switch dependency {
            case .byNameItem(let name, _), .targetItem(let name, _): add(name)
            default: break
            }
        }
    }
    add(module + "Tests")
    package.targets.removeAll { !needed.contains($0.name) }
    package.products = []
}
