// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

/// The shared libraries that a program with the library loads: FoundationEssentials, but neither Foundation nor its
/// ICU.
@Suite(.enabled(if: Build.isPlain, "A build with a sanitizer links other libraries."), .serialized)
struct LinkageTests {
    private static let heavy: Set = [
        "libFoundation.so", "lib_FoundationICU.so", "libFoundationInternationalization.so",
        "libFoundationNetworking.so",
        "libFoundationXML.so",
    ]

    @Test func `a program that imports AsyncNetworking loads FoundationEssentials only`() async throws {
        let libraries = try await Build.librariesOfProgram(
            """
            import AsyncNetworking
            let session = SessionManager()
            print(session)
            """)
        #expect(libraries.contains("libFoundationEssentials.so"))
        #expect(libraries.contains { $0.hasPrefix("libcurl.so") })
        #expect(libraries.intersection(Self.heavy) == [])
    }

    @Test(.enabled(if: Build.isForDocumentedSystem, "The system has other packages."))
    func `the documentation lists the packages that a program needs at run time`() async throws {
        let article = try #require(Build.article)
        let list = try #require(article.firstMatch(of: /--no-install-recommends ([\w\+\- ]+)/)).1.split(separator: " ")
        let packages = try await Build.packages(
            ofProgram: """
                import AsyncNetworking
                print(SessionManager())
                """)
        // The first two are essential packages of any image, the last has the trust store.
        #expect(Set(list.map(String.init)) == packages.subtracting(["libc6", "libgcc-s1"]).union(["ca-certificates"]))
    }

    @Test func `the check detects Foundation if it is linked`() async throws {
        let libraries = try await Build.librariesOfProgram(
            """
            import AsyncNetworking
            import Foundation
            print(SessionManager(), Date.now.formatted())
            """)
        #expect(libraries.contains("libFoundation.so"))
    }
}

/// The build to which these tests belong.
private enum Build {
    /// The directory with the modules and objects, which also contains the test executable.
    static let directory = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

    /// The article "Supported systems".
    static let article = SourceTree.text(of: "Sources/AsyncNetworking/Documentation.docc/SupportedSystems.md")

    /// Whether the system is the Debian release whose packages the article lists.
    static var isForDocumentedSystem: Bool {
        guard let release = try? String(contentsOfFile: "/etc/os-release", encoding: .utf8),
            let name = release.firstMatch(of: /VERSION_CODENAME=(\w+)/)?.1
        else { return false }
        return article?.contains("FROM debian:\(name)-slim") == true
    }

    static var isPlain: Bool { !directory.path().contains("/.build-") }

    /// The modules that are linked into a program with AsyncNetworking.
    private static let modules = [
        "AsyncNetworking", "ANCache", "ANSerialization", "ANCurl", "ANReachability", "ANHTTP", "ANSystem", "HTTPTypes",
        "RawStructuredFieldValues",
    ]

    /// The module maps of the system library targets, which a build passes to dependent targets.
    private static let foreignModules = ["CCurl", "COpenSSL", "CLinux", "CZlib", "CDecoders"].map {
        SourceTree.root.appending(path: "Sources/\($0)/module.modulemap").path()
    }

    /// Compiles and links a program, and returns the names of its shared libraries.
    static func librariesOfProgram(_ source: String) async throws -> Set<String> {
        try await withProgram(source) { try await libraries(of: $0) }
    }

    /// Compiles and links a program, and returns the packages with the system's libraries that the program and the
    /// libraries of Swift are linked with.
    static func packages(ofProgram source: String) async throws -> Set<String> {
        try await withProgram(source) { program in
            let paths = try await run(["ldd", program]).matches(of: /=> (\S+)/).map { String($0.1) }
            var needed: Set<String> = []
            for path in [program] + paths.filter({ $0.contains("/swift/") }) {
                needed.formUnion(try await libraries(of: path))
            }
            let files = paths.filter { path in
                !path.contains("/swift/") && needed.contains { path.hasSuffix("/\($0)") }
            }
            let names = files.map { "*/" + $0.split(separator: "/").suffix(1).joined() }
            let owners = try await run(["dpkg", "-S"] + names)
            return Set(
                owners.matches(of: /(?m)^([^:\s]+):/).map { String($0.1) }.filter { !$0.hasSuffix("-cross") })
        }
    }

    private static func libraries(of path: String) async throws -> Set<String> {
        let dynamic = try await run(["readelf", "-d", path])
        return Set(dynamic.matches(of: /\(NEEDED\).*\[(.+?)\]/).map { String($0.1) })
    }

    private static func withProgram<Value>(
        _ source: String, _ body: (_ path: String) async throws -> Value
    ) async throws -> Value {
        let scratch = FileManager.default.temporaryDirectory.appending(path: "an-linkage-\(UUID())")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: scratch) }
        let main = scratch.appending(path: "main.swift")
        try Data(source.utf8).write(to: main)
        let program = scratch.appending(path: "program")
        let objects = try modules.flatMap { module in
            let names = try FileManager.default.contentsOfDirectory(
                atPath: directory.appending(path: "\(module).build").path())
            return names.filter { $0.hasSuffix(".o") && !isStale($0, of: module) }
                .map { directory.appending(path: "\(module).build/\($0)").path() }
        }
        _ = try await run(
            ["swiftc", main.path(), "-o", program.path(), "-I", directory.appending(path: "Modules").path()]
                + foreignModules.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] } + objects
                + ["-lcurl", "-lssl", "-lcrypto"])
        return try await body(program.path())
    }

    /// Whether an object file belongs to a source file that no longer exists.
    private static func isStale(_ object: String, of module: String) -> Bool {
        let sources = SourceTree.sources.filter { $0.module == module }
        return !sources.isEmpty && object.hasSuffix(".swift.o")
            && !sources.contains { $0.path.hasSuffix("/" + object.dropLast(2)) }
    }

    /// Runs a command from the `PATH` and returns its output.
    private static func run(_ arguments: [String]) async throws -> String {
        let outcome = try await Command(arguments).run()
        try #require(outcome.status == 0, "\(arguments.prefix(1)): \(outcome.text)")
        return outcome.text
    }
}
