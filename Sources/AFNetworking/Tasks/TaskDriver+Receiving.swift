// SPDX-License-Identifier: MIT

import AsyncNetworking

extension TaskDriver {
    /// Reads a response; called in the core task. While the task is suspended, no block is called, and it does not end.
    func receive(_ head: ResponseHead, _ body: ResponseBody, _ core: TaskCore) async throws {
        try await core.waitUntilRunning()
        let expected = head.expectedContentLength
        change { $0.receive(head) }
        if observer != nil {
            try await decide(head)
            if change({ $0.dataTask != nil }) { return try await receiveFile(body, expected, core) }
        }
        try await receiveData(body, expected, core)
    }

    private func receiveData(_ body: ResponseBody, _ expected: Int64, _ core: TaskCore) async throws {
        // Requests of the manager have the options of its session.
        let limit = core.request?.options?.maximumBodySize ?? 0
        var data = Data()
        defer { change { [data] in $0.data = data } }
        for try await chunk in body {
            try data.collect(chunk, upTo: limit)
            try await core.waitUntilRunning()
            await didReceive(chunk, expected)
        }
        try await core.waitUntilRunning()
        core.complete(Int64(data.count))
    }

    private func receiveFile(_ body: ResponseBody, _ expected: Int64, _ core: TaskCore) async throws {
        let temporary = Self.makeTemporaryURL()
        try await body.write(to: temporary.path, mode: 0o600) { chunk in
            try await core.waitUntilRunning()
            await didReceive(chunk, expected)
        }
        try await core.waitUntilRunning()
        core.complete(change { $0.counts.received })
        await moveDownload(from: temporary)
    }

    /// Counts a part of the body and reports it to the progress object, the callbacks and the hooks.
    private func didReceive(_ chunk: Data, _ expected: Int64) async {
        let (total, isWatched) = change { state in
            state.counts.received += Int64(chunk.count)
            return (state.counts.received, state.isDownloadWatched)
        }
        guard isWatched || observer != nil else { return }
        await onSessionQueue { [self] in
            if let task = task as? URLSessionDataTask {
                tell(\.downloadProgress, \.downloadProgress, total, of: expected < 0 ? nil : expected)
                if let observer { observer.urlSession(session(of: observer), dataTask: task, didReceive: chunk) }
            } else {
                didWrite(Int64(chunk.count), total, of: expected)
            }
        }
    }

    /// Asks the manager's delegate method for the disposition of a response.
    private func decide(_ head: ResponseHead) async throws {
        guard let dataTask = task as? URLSessionDataTask, let response else { return }
        let disposition = await ask(fallback: URLSession.ResponseDisposition.cancel) { manager, session, handler in
            manager.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: handler)
        }
        switch disposition {
        case .allow: return
        case .cancel: throw CancellationError()
        case .becomeDownload:
            change { $0.dataTask = dataTask }
            // It replaces the data task as the object that the manager retains.
            let downloadTask = AFDownloadTask(self)
            await onSessionQueue { [self] in
                guard let manager else { return }
                manager.urlSession(session(of: manager), dataTask: dataTask, didBecome: downloadTask)
            }
        @unknown default: return
        }
    }

    /// Moves a download to the URL from the manager's block or, if that returns `nil`, from the task's `destination`.
    /// Without a URL the file is deleted.
    func moveDownload(from temporary: URL) async {
        await onSessionQueue { [self] in
            defer { try? FileManager.default.removeItem(at: temporary) }
            guard let task = task as? URLSessionDownloadTask, let manager else { return }
            if manager.isObserved {
                manager.urlSession(session(of: manager), downloadTask: task, didFinishDownloadingTo: temporary)
            }
            let (known, destination) = change { ($0.destinationURL, $0.callbacks.destination) }
            guard known == nil, let response, let destinationURL = destination?(temporary, response) else { return }
            manager.move(task, from: temporary, to: destinationURL)
        }
    }
}
