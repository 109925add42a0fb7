// SPDX-License-Identifier: MIT

import FoundationEssentials

/// Standard input as a sequence of chunks. It is polled, so that cancellation ends it.
struct StandardInput: AsyncSequence, Sendable {
    func makeAsyncIterator() -> Iterator { Iterator() }

    struct Iterator: AsyncIteratorProtocol {
        private var pause = Duration.milliseconds(1)

        mutating func next() async throws -> Data? {
            while !StandardStream.input.isReadable {
                try await Task.sleep(for: pause)
                pause = Swift.min(pause * 2, .milliseconds(50))
            }
            pause = .milliseconds(1)
            let chunk = try StandardStream.input.read(upTo: 65_536)
            return chunk.isEmpty ? nil : chunk
        }
    }
}
