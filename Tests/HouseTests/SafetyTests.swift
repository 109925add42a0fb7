// SPDX-License-Identifier: MIT

import Testing

/// Where code may leave the language's guarantees, and where it may end the program.
@Suite struct SafetyTests {
    /// Whole modules, and folders of modules, that speak to C.
    private static let unsafePlaces = [
        "Sources/ANSystem/", "Sources/ANCurl/", "Sources/ANReachability/", "Sources/AsyncNetworkingTesting/Server/",
        "Sources/AsyncNetworkingTesting/TLS/",
    ]

    /// Code that ends the program, each with its reason.
    private static let allowedTraps: [(path: String, code: String)] = [
        // The Swift runtime asks for it: `assumeIsolated` off the loop's thread would be a race.
        ("Sources/ANSystem/EventLoop.swift", "precondition(isOnThread, ")
    ]

    @Test(arguments: SourceTree.sources.filter { file in !unsafePlaces.contains { file.path.hasPrefix($0) } })
    func `unsafe code stays in the modules that speak to C`(file: SourceFile) {
        // `nonisolated(unsafe)`, `@unsafe` and what can only be called with `unsafe` have the word too.
        #expect(file.places(of: ["unsafe", "@safe", "Unmanaged", "assumeIsolated"]) == [])
    }

    @Test func `the lock is the one type whose sendability is not checked`() {
        let places = SourceTree.sources.flatMap { $0.places(of: ["@unchecked"]) }
        #expect(places.count == 1)
        #expect(places.allSatisfy { $0.hasPrefix("Sources/ANSystem/Lock.swift:") }, "\(places)")
    }

    @Test(arguments: SourceTree.sources)
    func `nothing ends the program`(file: SourceFile) {
        let traps = file.places(of: [
            "try!", "as!", "fatalError", "preconditionFailure", "precondition", "assertionFailure", "assert",
            "unsafelyUnwrapped", "abort", "exit",
        ])
        let surprises = traps.filter { place in
            !Self.allowedTraps.contains { place.hasPrefix("\($0.path):") && place.contains($0.code) }
        }
        #expect(surprises == [])
    }

    @Test(arguments: allowedTraps.indices)
    func `each exception is still needed`(index: Int) throws {
        let (path, code) = Self.allowedTraps[index]
        let text = try #require(SourceTree.text(of: path), "\(path) is gone; so is its exception")
        #expect(text.contains(code), "\(path) has no `\(code)` any more; take the exception away")
    }

    @Test func `code is told from comments and strings`() {
        let file = SourceFile(
            path: "Sources/M/F.swift",
            text: ##"""
                // try! in a comment
                let text = "as! \" try!" // as!
                let url = "http://x" as! Text
                let raw = #"try! "quoted" "#
                let long = """
                    fatalError() // "
                    """
                let shown = try! long
                """##)
        #expect(file.places(of: ["try!", "as!", "fatalError"]).map { $0.split(separator: ":")[1] } == ["3", "8"])
    }
}
