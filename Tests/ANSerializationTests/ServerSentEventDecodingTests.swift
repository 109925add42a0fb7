// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import Testing

@Suite struct ServerSentEventDecodingTests {
    private struct Change: Decodable, Equatable {
        var row: Int
    }

    @Test func `the data of an event is decoded`() throws {
        #expect(try ServerSentEvent(data: #"{"row": 7}"#).decoded(as: Change.self) == Change(row: 7))
        #expect(try ServerSentEvent(data: "[1,\n2]").decoded(as: [Int].self) == [1, 2])
    }

    @Test func `an error names the path and the text there`() throws {
        let event = ServerSentEvent(data: #"[{"row": 1}, {"row": "x"}]"#)
        let error = try #require(throws: SerializationError.self) { try event.decoded(as: [Change].self) }
        guard case .decoding(let failure) = error else { throw error }
        #expect(failure.path == "[1].row")
        let malformed = try #require(throws: SerializationError.self) {
            try ServerSentEvent(data: "[DONE]").decoded(as: Change.self)
        }
        guard case .json = malformed else { throw malformed }
    }
}
