// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials

extension SessionManager {
    /// Performs a task's request and writes the body to a file, as far as the task may work.
    nonisolated func download(_ transfer: Transfer, to destination: String) async throws -> Response<DownloadedFile> {
        let core = transfer.core
        return try await perform(
            transfer.gatedTask(), delivery: .streamed, reporting: core.monitor
        ) { head, body in
            core.receive(head)
            if let rejection = try await Self.rejection(of: head, body) {
                throw SerializationError.rejected(rejection)
            }
            core.monitor.accept()
            let size = try await body.write(to: destination) { try await core.pass() }
            core.monitor.complete(size)
            return Response(
                DownloadedFile(path: destination, size: size), head: head, ending: body.ending ?? ResponseEnding())
        }
    }

    /// The rejection of a response that is no file, with as much of its body as an error page has.
    private nonisolated static func rejection(of head: ResponseHead, _ body: ResponseBody) async throws -> Rejection? {
        guard ResponseValidation.statusOnly.rejection(of: head, Data()) != nil else { return nil }
        var page = Data()
        for try await chunk in body {
            page.append(chunk.prefix((1 << 20) - page.count))
            if page.count == 1 << 20 { break }
        }
        return ResponseValidation.statusOnly.rejection(of: head, page)
    }
}
