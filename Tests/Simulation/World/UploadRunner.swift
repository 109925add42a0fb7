// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// Performs a resumable upload, and judges its progress and its end.
struct UploadRunner: Sendable {
    let runner: CallRunner
    let session: SessionManager
    private var call: Program.Call { runner.call }
    private var ledger: Ledger { runner.ledger }

    init(runner: CallRunner, session: SessionManager) {
        (self.runner, self.session) = (runner, session)
    }

    func perform(_ request: Request) async throws {
        let content = Data(
            (0..<call.upload.length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8 &+ call.number) })
        ledger.update { state in
            var plan = UploadOrigin.Plan(
                uploadProtocol: call.upload.usesTus ? .tus : .ietf, content: content,
                // Uploads by tus are created by POST.
                mayRepeat: call.method == .put && !call.upload.usesTus || call.hasIdempotencyKey)
            // A second process may send again what the first one has completed.
            if let earlier = state.plans[call.number] {
                (plan.mayRepeat, plan.completions, plan.offsets) = (true, earlier.completions, earlier.offsets)
            }
            state.plans[call.number] = plan
        }
        var request = request
        request.url = Resource.root(of: UploadOrigin.host).appending(path: "up/\(call.number)")
        request.body = .bytes(content)
        if call.isDurable {
            let path = "\(runner.directory)/u\(call.number)"
            if !FileManager.default.fileExists(atPath: path) { try content.write(to: URL(filePath: path)) }
            request.body = .file(path)
        }
        let options = UploadOptions.resumable.with {
            $0.isDurable = call.isDurable
            $0.uploadProtocol = call.upload.discovers ? nil : call.upload.usesTus ? .tus : .ietf
            $0.partSize = call.upload.partSize
            $0.verifiesParts = call.upload.verifies
        }
        let task = session.makeUploadTask(for: request, options: options)
        observe(task.erased)
        try await runner.withSuspension(of: task.erased) {
            let response = try await task.value
            guard (200...299).contains(response.statusCode) else { return }
            ledger.cover("oracle.2.resumable")
            if ledger.facts.plans[call.number]?.completions == 0 {
                ledger.violate(2, "the upload of call \(call.number) succeeds, and the server has not all bytes")
            }
        }
    }

    /// Judges the progress: it never exceeds the total, and falls only to an offset of the server, or to bytes that are
    /// sent from there.
    private func observe(_ task: AnySessionTask) {
        let state = Lock((last: Int64(0), start: Int64?.none))
        task.core?.observe { [ledger, call] event in
            switch event {
            case .exchange(_, .started(let request)):
                state.withLock { $0.start = request.headers[.uploadOffset].flatMap { Int64($0) } ?? 0 }
            case .uploadProgress(let progress):
                let count = progress.completedBytes
                let (last, start) = state.withLock { state in
                    defer { state = (count, nil) }
                    return state
                }
                let offsets = ledger.facts.plans[call.number]?.offsets ?? []
                if progress.totalBytes != Int64(call.upload.length) || count > Int64(call.upload.length) {
                    ledger.violate(8, "the progress of upload \(call.number) is \(progress)")
                } else if count < last, !offsets.contains(count), !(start.map { $0 <= count } ?? false) {
                    ledger.violate(8, "the progress of upload \(call.number) falls from \(last) to \(count)")
                }
                ledger.cover("oracle.8.upload")
            default: break
            }
        }
    }
}
