// SPDX-License-Identifier: MIT

import Releases

let repository = CommandLine.arguments.dropFirst().first ?? "swiftlang/swift"
do {
    if let release = try await Releases().latest(of: repository) {
        print(release.tagName, release.publishedAt)
    } else {
        print("\(repository) has no release.")
    }
} catch {
    print(error)
}
