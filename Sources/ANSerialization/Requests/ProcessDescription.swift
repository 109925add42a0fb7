// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A description of the process and its system, on which the default header fields are based.
package struct ProcessDescription: Hashable, Sendable {
    /// The name of the program.
    package var program: String
    /// The version of the program; `nil` if it is unknown.
    package var version: String?
    /// The architecture that the program was built for, such as `x86_64`.
    package var architecture: String
    /// The environment variables, which determine the locale.
    package var environment: [String: String]

    /// Creates a description, by default for this library's architecture and an empty environment.
    package init(
        program: String, version: String? = nil, architecture: String = Self.architecture,
        environment: [String: String] = [:]
    ) {
        self.program = program
        self.version = version
        self.architecture = architecture
        self.environment = environment
    }

    /// Returns the description of this process: the last component of `argv[0]` and the initial environment.
    ///
    /// The environment is read from `/proc` on each call (proc(5)), and empty if it cannot be read.
    package static func current(version: String? = nil) -> ProcessDescription {
        ProcessDescription(
            program: CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "unknown",
            version: version,
            environment: environment)
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

    private static var environment: [String: String] {
        guard let contents = try? Data(contentsOf: URL(filePath: "/proc/self/environ")) else { return [:] }
        var environment: [String: String] = [:]
        for entry in String(decoding: contents, as: UTF8.self).split(separator: "\0") {
            let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { environment[String(parts[0])] = String(parts[1]) }
        }
        return environment
    }
}
