// SPDX-License-Identifier: MIT

// Copies a resource from one server to another while it is received: no more than a buffer of it is in memory.

import AsyncNetworking
import FoundationEssentials
import Glibc

let words = CommandLine.arguments
guard words.count == 3, let source = URL(string: words[1]), let target = URL(string: words[2]) else {
    print("usage: SOURCE TARGET")
    exit(2)
}
let api = SessionManager()
try await api.withResponse(for: Request(url: source), validating: .statusOnly) { head, body in
    // The target's pace is that of the source: a chunk is read when the one before it was accepted.
    var request = Request(method: .put, url: target, body: .stream(body))
    request.headers[.contentType] = head.headers[.contentType]
    try await api.withUpload(request) { upload in
        for await progress in upload.progress { print(progress.completedBytes) }
        print(try await upload.value.statusCode)
    }
}
