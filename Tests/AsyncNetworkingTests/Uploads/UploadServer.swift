// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

/// The scripts of a server with one resumable upload at `/u/1`, which is created at `/up`.
final class UploadServer: Sendable {
    private let uploadProtocol: UploadProtocol
    private let length: Int
    private let state = Lock((data: Data(), overlap: 0))

    init(_ uploadProtocol: UploadProtocol, length: Int, on stub: StubServer) {
        (self.uploadProtocol, self.length) = (uploadProtocol, length)
        stub.route(
            "/up", method: "OPTIONS",
            uploadProtocol == .tus
                ? .status(204, headers: ["Tus-Resumable": "1.0.0", "Tus-Extension": "creation,termination"])
                : .status(204, headers: ["Upload-Limit": "min-size=0"]))
        stub.route("/u/1", method: "HEAD", Script([.respond { _ in Reply(status: 204, headers: self.offset) }]))
        stub.route("/u/1", method: "DELETE", .status(204))
    }

    /// The bytes that have arrived.
    var data: Data { state.withLock { $0.data } }
    /// The number of bytes that were sent although the server had them.
    var overlap: Int { state.withLock { $0.overlap } }

    /// Assigns scripts to the requests with content, of which the last one is repeated.
    func receive(_ scripts: [Script], on stub: StubServer) {
        if uploadProtocol == .tus {
            stub.route("/up", method: "POST", .status(201, headers: ["Location": "/u/1"]))
            stub.route("/u/1", method: "PATCH", scripts: scripts)
        } else {
            stub.route("/up", method: "POST", scripts: Array(scripts.prefix(1)))
            stub.route("/u/1", method: "PATCH", scripts: scripts.count > 1 ? Array(scripts.dropFirst()) : scripts)
        }
    }

    /// A script that receives at least a number of bytes of the content, and then resets the connection.
    func cut(after count: Int) -> Script {
        Script(
            start + [
                .readBody(upTo: Int64(count)), .disconnect(afterBytes: 0, by: .reset), .respond { self.take($0) },
            ],
            readsBodyFirst: false)
    }

    /// A script that receives the content.
    var complete: Script { Script(start + [.readBody(), .respond { self.take($0) }], readsBodyFirst: false) }

    /// The interim response with the URL of the upload.
    private var start: [Script.Action] {
        guard uploadProtocol == .ietf else { return [] }
        return [.informational(104, headers: ["Upload-Draft-Interop-Version": "8", "Location": "/u/1"])]
    }

    private var offset: HeaderPairs {
        let count = data.count
        var pairs = [HeaderPair("Upload-Offset", "\(count)"), HeaderPair("Upload-Length", "\(length)")]
        if uploadProtocol == .ietf { pairs.append(HeaderPair("Upload-Complete", count == length ? "?1" : "?0")) }
        return HeaderPairs(pairs)
    }

    /// Appends the content of a request, as far as it has arrived, and returns the response.
    private func take(_ request: RecordedRequest) -> Reply {
        let start = Int(request.headers["Upload-Offset"] ?? "0") ?? 0
        let isNext = state.withLock { state in
            guard start == state.data.count else {
                state.overlap += max(0, state.data.count - start)
                return false
            }
            state.data += request.body
            return true
        }
        guard isNext else { return Reply(status: 409, headers: offset) }
        let isWhole = data.count == length && uploadProtocol == .ietf
        return Reply(status: isWhole ? 200 : 204, headers: offset, body: isWhole ? .string("done") : .bytes(Data()))
    }
}
