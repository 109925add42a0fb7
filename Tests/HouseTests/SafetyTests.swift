// SPDX-License-Identifier: MIT

import Testing

/// Where code may leave the language's guarantees, and where it may end the program.
@Suite struct SafetyTests {
    /// Whole modules, and folders of modules, that speak to C.
    private static let unsafePlaces = [
        "Sources/ANSystem/", "Sources/ANCurl/", "Sources/ANReachability/", "Sources/AsyncNetworkingTesting/Server/",
        "Sources/AsyncNetworkingTesting/TLS/",
        // Foundation reads streams and property lists by pointers only.
        "Sources/AFNetworking/Support/FoundationPointers.swift",
    ]

    /// Where sendability may be stated and not checked, with the reason.
    private static let uncheckedPlaces = [
        "Sources/ANSystem/Lock.swift",
        // Closures and objects of AFNetworking's interface, which has no types for what may cross threads.
        "Sources/AFNetworking/Support/Handover.swift",
        // Classes that users subclass cannot be checked; what they have themselves is constant, or in a lock.
        "Sources/AFNetworking/Managers/", "Sources/AFNetworking/RequestSerialization/",
        "Sources/AFNetworking/ResponseSerialization/", "Sources/AFNetworking/Security/",
        "Sources/AFNetworking/Reachability/",
        // Foundation's task classes have their subclasses state it again.
        "Sources/AFNetworking/Tasks/",
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

    @Test func `sendability goes unchecked in the lock, and in the interface of AFNetworking`() {
        let places = SourceTree.sources.flatMap { $0.places(of: ["@unchecked"]) }
        #expect(places.count { $0.hasPrefix("Sources/ANSystem/Lock.swift:") } == 1)
        let surprises = places.filter { place in !Self.uncheckedPlaces.contains { place.hasPrefix($0) } }
        #expect(surprises == [])
    }

    @Test(
        arguments: SourceTree.sources.filter { $0.module == "AFNetworking" && !$0.places(of: ["@unchecked"]).isEmpty })
    func `a class of AFNetworking that is sendable unchecked guards its state`(file: SourceFile) {
        // Stored variables of a class stand four blanks in; those of structs within it stand deeper.
        let variables = file.lines.filter { line in
            line.firstMatch(of: /^    (?:private |public |open |weak )*var [^{]*$/) != nil
        }
        #expect(variables == [])
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
