// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

extension RequestBody {
    /// Writes the body to a file, which appears at `path` only when it is complete.
    func write(to path: String) async throws {
        var file = try AtomicFile(destination: path)
        switch content {
        case .none: break
        case .bytes(let data): try file.write(data.bytes)
        case .file(let source): try file.write(Data(contentsOf: URL(filePath: source), options: .alwaysMapped).bytes)
        case .stream(_, _, let makeReader):
            let reader = try makeReader()
            while let chunk = try await reader.next() { try file.write(chunk.bytes) }
        }
        try file.commit()
    }
}

extension Result where Failure == any Error {
    /// Creates the result of calling an async function.
    init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
