// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// A parser of the elements of a body, wherever its bytes are split into chunks.
package protocol BodyParser: Sendable {
    /// A part of the body, such as a line.
    associatedtype Element: Sendable

    /// Adds a chunk of bytes.
    mutating func append(_ chunk: Data)
    /// Returns the next complete element; `nil` if more bytes are needed.
    mutating func next() throws -> Element?
    /// Returns the last element at the end of the body; `nil` if there is none.
    mutating func finish() -> Element?
}

/// The reader of a body's elements that the iterators of a sequence share, so that each continues where the last one
/// stopped.
package actor BodyReader<Parser: BodyParser> {
    private let body: ResponseBody
    private var parser: Parser
    private var isAtEnd = false

    /// Creates a reader of a body.
    package init(_ body: ResponseBody, by parser: Parser) {
        self.body = body
        self.parser = parser
    }

    /// Returns the next element; `nil` at the end of the body, and in all later calls.
    ///
    /// - Throws: The errors of the body and the parser, or `CancellationError` if the task is cancelled, also if elements
    ///   have arrived.
    package func next() async throws -> Parser.Element? {
        while !isAtEnd {
            try Task.checkCancellation()
            if let element = try parser.next() { return element }
            guard let chunk = try await body.next() else {
                isAtEnd = true
                return parser.finish()
            }
            parser.append(chunk)
        }
        return nil
    }
}
