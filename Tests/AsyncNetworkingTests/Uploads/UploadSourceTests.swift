// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Testing

@Suite struct UploadRecordTests {
    private typealias State = UploadRecord.State

    /// What is known of an upload with a number.
    private static func known(_ number: Int) throws -> ResumableUpload.Known {
        let text = #"{"uploadProtocol":"tus","url":"http://a.example/\#(number)","#
        return try JSONDecoder().decode(
            ResumableUpload.Known.self, from: Data((text + #""canBeCancelled":true,"mayBeComplete":false}"#).utf8))
    }

    @Test func `the file is changed only if what is known of the upload is not in it`() throws {
        let (one, two) = (try Self.known(1), try Self.known(2))
        let table: [(state: State, nothing: State.Action, one: State.Action, two: State.Action)] = [
            (.nothing(isOfAnother: false), .none, .write, .write),
            (.nothing(isOfAnother: true), .none, .write, .write),
            (.written(one), .empty, .flushDirectory, .write),
            (.flushed(one), .empty, .none, .write),
        ]
        for row in table {
            #expect(row.state.action(noting: nil) == row.nothing, "\(row.state)")
            #expect(row.state.action(noting: one) == row.one, "\(row.state)")
            #expect(row.state.action(noting: two) == row.two, "\(row.state)")
        }
    }
}
