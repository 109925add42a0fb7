// SPDX-License-Identifier: MIT

import Testing

/// The layers: each module with the modules that its files may import. All dependencies point down.
@Suite struct LayeringTests {
    private static let tower: [String: Set<String>] = [
        // 1: C libraries.
        "CCurl": [],
        "COpenSSL": [],
        "CLinux": [],
        "CZlib": [],
        "CDecoders": [],
        "CVips": [],
        // 2: values and the transport protocol; the event loop.
        "ANSystem": ["CDecoders", "CLinux", "COpenSSL", "CZlib", "Glibc", "Synchronization"],
        "ANHTTP": ["HTTPTypes", "FoundationEssentials", "RawStructuredFieldValues", "Synchronization"],
        // 3: serialization; libcurl; netlink; the response cache.
        "ANSerialization": ["ANHTTP", "ANSystem", "HTTPTypes", "FoundationEssentials"],
        "ANCurl": [
            "ANHTTP", "ANSystem", "CCurl", "CLinux", "COpenSSL", "HTTPTypes", "FoundationEssentials", "Glibc",
            "Synchronization",
        ],
        "ANReachability": ["ANSystem", "CLinux", "Glibc"],
        "ANCache": ["ANHTTP", "ANSystem", "HTTPTypes", "FoundationEssentials"],
        // 4: the session.
        "AsyncNetworking": [
            "ANCache", "ANHTTP", "ANSerialization", "ANCurl", "ANReachability", "ANSystem", "HTTPTypes",
            "FoundationEssentials", "Synchronization",
        ],
        // 5: products for particular uses.
        "AsyncNetworkingXML": ["AsyncNetworking", "ANSystem", "FoundationXML", "Foundation"],
        "AsyncNetworkingObservability": [
            "AsyncNetworking", "ANSystem", "HTTPTypes", "FoundationEssentials", "CoreMetrics", "Logging",
            "ServiceLifecycle", "Tracing",
        ],
        "AsyncNetworkingImages": ["AsyncNetworking", "ANSystem", "CVips", "FoundationEssentials"],
        "AFNetworking": [
            "AsyncNetworking", "AsyncNetworkingImages", "AsyncNetworkingXML", "ANSystem", "HTTPTypes", "Dispatch",
            "Foundation", "FoundationNetworking", "FoundationXML", "Synchronization",
        ],
        // Beside the layers: test support.
        "AsyncNetworkingTesting": [
            "ANHTTP", "ANSystem", "CLinux", "COpenSSL", "HTTPTypes", "FoundationEssentials", "Glibc", "Synchronization",
            "_Concurrency",
        ],
    ]

    @Test func `every module is in a layer, and every module of a layer exists`() {
        #expect(Set(SourceTree.modules) == Set(Self.tower.keys))
    }

    @Test(arguments: SourceTree.sources)
    func `a file imports only what its module may`(file: SourceFile) throws {
        let allowed = try #require(Self.tower[file.module], "\(file.path) is not in a module of the layers")
        for (module, line) in file.imports {
            #expect(allowed.contains(module), "\(file.path):\(line): \(file.module) must not import \(module)")
        }
    }

    @Test func `the session knows the engine by its protocol only`() {
        let files = SourceTree.sources.filter {
            $0.module == "AsyncNetworking" && $0.imports.contains { $0.module == "ANCurl" }
        }
        // They create the engine, and read and evaluate certificates, for which it has OpenSSL.
        #expect(
            files.map { $0.path.split(separator: "/").last } == [
                "SecurityPolicy+Certificates.swift", "SessionManager.swift",
            ])
    }

    @Test func `the layers have no cycles`() {
        var below = Self.tower.mapValues { $0.filter { Self.tower[$0] != nil } }
        while let bottom = below.first(where: \.value.isEmpty)?.key {
            below[bottom] = nil
            for module in below.keys { below[module]?.remove(bottom) }
        }
        #expect(below.isEmpty)
    }

    @Test func `only the top products import all of Foundation`() {
        let heavy: Set = ["Foundation", "FoundationNetworking", "FoundationXML", "FoundationInternationalization"]
        let importers = Self.tower.filter { !$0.value.isDisjoint(with: heavy) }.keys
        #expect(Set(importers) == ["AFNetworking", "AsyncNetworkingXML"])
    }

    @Test func `all forms of import declarations are recognized`() {
        let file = SourceFile(
            path: "Sources/M/F.swift",
            text: """
                // import Comment
                import A
                public import B
                @_exported public import C
                @preconcurrency import struct D.Inner
                package import E.Sub
                let text = "import F"
                let quoted = \"\"\"
                    import G
                    \"\"\"
                """)
        #expect(file.imports.map(\.module) == ["A", "B", "C", "D", "E"])
        #expect(file.imports.map(\.line) == [2, 3, 4, 5, 6])
        #expect(file.module == "M")
    }
}
