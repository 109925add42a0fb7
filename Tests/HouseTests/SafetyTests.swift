// SPDX-License-Identifier: MIT

import Foundation
import HTTPTypes
import Testing

/// Where code may opt out of safety checks, and where it may trap.
@Suite struct SafetyTests {
    /// Modules and directories that call C functions.
    private static let unsafePlaces = [
        "Sources/ANSystem/", "Sources/ANCurl/", "Sources/ANReachability/", "Sources/AsyncNetworkingTesting/Server/",
        "Sources/AsyncNetworkingTesting/TLS/", "Sources/AsyncNetworkingImages/Decoding/Vips/",
        // The hook of the Swift runtime, and the execution of its jobs.
        "Sources/AsyncNetworkingTesting/Simulation/",
        // Foundation reads streams and property lists with pointers only.
        "Sources/AFNetworking/Support/FoundationPointers.swift",
    ]

    /// Files and directories that may use `@unchecked Sendable`, with the reason.
    private static let uncheckedPlaces = [
        "Sources/ANSystem/Lock.swift",
        // Closures and objects of AFNetworking's interface, which does not express in types what may cross threads.
        "Sources/AFNetworking/Support/Callback.swift",
        // Subclassable classes cannot be checked. Their stored properties are constants or protected by a lock.
        "Sources/AFNetworking/Managers/", "Sources/AFNetworking/RequestSerialization/",
        "Sources/AFNetworking/ResponseSerialization/", "Sources/AFNetworking/Security/",
        "Sources/AFNetworking/Reachability/",
        // Foundation's task classes require their subclasses to restate the conformance.
        "Sources/AFNetworking/Tasks/",
        // Values with objects of their own, which a lock protects together with them.
        "Sources/ANCurl/Engine/AdmissionQueue.swift", "Sources/ANCurl/Engine/LoopTable.swift",
    ]

    /// Files that may disable run-time checks of exclusive access: the state of the event loop's thread, for the reason
    /// given at `LoopState`.
    private static let exclusivityPlaces = [
        "Sources/ANCurl/Engine/LoopState.swift", "Sources/ANCurl/Engine/CurlEngine.swift",
        "Sources/ANCurl/Headers/HeaderFieldCache.swift", "Sources/ANCurl/Transfer/Transfer.swift",
        // Tables that a lock protects.
        "Sources/ANCurl/Engine/AdmissionQueue.swift", "Sources/ANCurl/Engine/LoopTable.swift",
    ]

    /// Code that may trap, with the reason.
    private static let allowedTraps: [(path: String, code: String)] = [
        // Required by the Swift runtime: `assumeIsolated` on another thread than the loop's would be a data race.
        ("Sources/ANSystem/EventLoop.swift", "precondition(isOnThread, "),
        // Names that are constants of the library; another field in place of a wrong one would be sent silently.
        ("Sources/ANHTTP/Messages/HTTPFields.swift", "preconditionFailure("),
    ]

    @Test(arguments: SourceTree.sources.filter { file in !unsafePlaces.contains { file.path.hasPrefix($0) } })
    func `unsafe code is limited to the modules that call C functions`(file: SourceFile) {
        // `nonisolated(unsafe)` and `@unsafe` contain the word, too, as do expressions that require `unsafe`.
        #expect(file.places(of: ["unsafe", "@safe", "Unmanaged", "assumeIsolated"]) == [])
    }

    @Test func `unchecked sendability is limited`() {
        let places = SourceTree.sources.flatMap { $0.places(of: ["@unchecked"]) }
        #expect(places.count { $0.hasPrefix("Sources/ANSystem/Lock.swift:") } == 1)
        let surprises = places.filter { place in !Self.uncheckedPlaces.contains { place.hasPrefix($0) } }
        #expect(surprises == [])
    }

    @Test func `TLS sessions of libcurl are used only after a check of its TLS library`() {
        let places = SourceTree.sources.flatMap { $0.places(of: ["ccurl_tls_session"]) }
        #expect(places.count == 1)
        #expect(places.allSatisfy { $0.hasPrefix("Sources/ANCurl/Transfer/Transfer+Connecting.swift:") })
    }

    @Test func `exclusive access is unchecked for the state of the event loops only`() {
        let places = SourceTree.sources.flatMap { $0.places(of: ["@exclusivity"]) }
        let surprises = places.filter { place in !Self.exclusivityPlaces.contains { place.hasPrefix($0) } }
        #expect(surprises == [])
    }

    @Test(
        arguments: SourceTree.sources.filter { $0.module == "AFNetworking" && !$0.places(of: ["@unchecked"]).isEmpty })
    func `a class of AFNetworking with unchecked sendability protects its state`(file: SourceFile) {
        // Stored properties of a class are indented by four spaces; those of nested types by more.
        let variables = file.lines.filter { line in
            line.firstMatch(of: /^    (?:private |public |open |weak )*var [^{]*$/) != nil
        }
        #expect(variables == [])
    }

    @Test(arguments: SourceTree.sources)
    func `no code traps`(file: SourceFile) {
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
        let text = try #require(SourceTree.text(of: path), "\(path) does not exist; remove its exception")
        #expect(text.contains(code), "\(path) does not contain `\(code)`; remove the exception")
    }

    /// The files of AsyncNetworking that create a lock, and why an actor does not guard the state. In a request, a lock
    /// that is entered and left costs 0.2 µs less than an actor.
    private static let locks = [
        "SessionState.swift": "Functions that create or list tasks, or ask what is known about hosts, return at once.",
        "Authentication/Authenticator.swift": "An interceptor may send a request, and so its token, concurrently.",
        "HAR/HARRecorder.swift":
            "Events come from the network thread, bodies and messages from the tasks that read and send them.",
        "Tasks/EventStreams.swift": "Values are sent from any thread.",
        "Tasks/TaskCore.swift": "Resuming, cancelling and observing a task returns at once.",
        "WebSockets/WebSocket.swift": "The bytes of a connection are handed over between tasks.",
        "Waiters.swift": "Waits and flights end where a task cannot suspend, in `defer`.",
    ]

    @Test func `the locks of AsyncNetworking are those that have a reason`() {
        let files = SourceTree.sources.filter { file in
            file.module == "AsyncNetworking" && !file.places(of: ["Lock"]).isEmpty
                && file.lines.contains { $0.contains(/\bLock(<.*>)?\(/) }
        }
        #expect(Set(files.map { $0.path.replacing("Sources/AsyncNetworking/", with: "") }) == Set(Self.locks.keys))
    }

    @Test func `constants are the names of header fields that they say`() throws {
        var names: [String] = []
        for file in SourceTree.sources {
            for line in file.lines where line.contains("HTTPField.Name(") {
                names += line.matches(of: /HTTPField\.Name\(constant: "([^"]*)"\)/).map { String($0.1) }
                #expect(line.firstMatch(of: /HTTPField\.Name\(.*\) \?\? \./) == nil, "\(file.path): another field")
            }
        }
        #expect(names.count > 8)
        for name in names { #expect(HTTPField.Name(name)?.rawName == name) }
    }

    /// Modules whose texts come from the kernel or another library, not from the network or the program.
    private static let localModules = ["ANSystem", "ANReachability", "AsyncNetworkingImages"]

    /// A string is divided into characters: of "'\u{301}" it finds no quotation mark, which a shell does.
    @Test(arguments: SourceTree.sources.filter { !localModules.contains($0.module) })
    func `delimiters are looked for among the scalars or bytes of a text`(file: SourceFile) {
        let search =
            /(\w*)(?:\[[^\[\]]*\])?(?:\.dropFirst\(\))?\.(?:split\(separator: "|replacing\("|firstRange\(of: "[^"]*"\)|(?:first|last)Index\(of: ")/
        let surprises = file.lines.filter { line in
            // The first condition is the fastest one.
            ["split(", "replacing(", "firstRange(", "Index("].contains { line.contains($0) }
                && !line.trimmingCharacters(in: .whitespaces).hasPrefix("//")
                && line.matches(of: search).contains { !["unicodeScalars", "utf8", "scalars"].contains($0.1) }
        }
        #expect(surprises == [])
    }

    @Test func `code is distinguished from comments and strings`() {
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
