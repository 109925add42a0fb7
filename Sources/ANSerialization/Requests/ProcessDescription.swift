// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A description of the process and its system, on which the default header fields are based.
package struct ProcessDescription: Hashable, Sendable {
    /// The name of the program.
    package var program: String
    /// The version of the program; `nil` if it is unknown.
    package var version: String?
    /// The release of the kernel as printed by `uname -r`; `nil` if it is unknown.
    package var systemRelease: String?
    /// The architecture that the program was built for, such as `x86_64`.
    package var architecture: String
    /// The environment variables, which determine the locale.
    package var environment: [String: String]

    /// Creates a description, by default for this library's architecture and an empty environment.
    package init(
        program: String, version: String? = nil, systemRelease: String? = nil, architecture: String = Self.architecture,
        environment: [String: String] = [:]
    ) {
        self.program = program
        self.version = version
        self.systemRelease = systemRelease
        self.architecture = architecture
        self.environment = environment
    }

    /// Returns the description of this process: the last component of `argv[0]`, the kernel's release and the initial
    /// environment.
    ///
    /// It is read from `/proc` on each call (proc(5)); values that cannot be read are missing.
    package static func current(version: String? = nil) -> ProcessDescription {
        ProcessDescription(
            program: CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "unknown",
            version: version,
            systemRelease: contents("/proc/sys/kernel/osrelease").map { String($0.prefix { !$0.isWhitespace }) },
            environment: environment(from: contents("/proc/self/environ") ?? ""))
    }

    /// The architecture that this library was built for: `x86_64`, `aarch64` or `unknown`.
    package static var architecture: String {
        #if arch(x86_64)
            "x86_64"
        #elseif arch(arm64)
            "aarch64"
        #else
            "unknown"
        #endif
    }

    private static func contents(_ path: String) -> String? {
        (try? Data(contentsOf: URL(filePath: path))).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func environment(from text: String) -> [String: String] {
        var environment: [String: String] = [:]
        for entry in text.split(separator: "\0") {
            let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { environment[String(parts[0])] = String(parts[1]) }
        }
        return environment
    }
}
