// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworkingTesting
import Testing

@Suite struct EventRecorderTests {
    let recorder = EventRecorder()

    @Test func `a recorder waits for an event`() async throws {
        let recorder = recorder
        async let finished = recorder.first { if case .finished = $0 { true } else { false } }
        recorder.receive(.uploadProgress(TransferProgress(completedBytes: 1, totalBytes: 2)))
        var metrics = TransferMetrics()
        metrics.sendCount = 7
        recorder.receive(.finished(metrics))
        guard case .finished(let reported) = try await finished else {
            Issue.record("The event is not the expected one.")
            return
        }
        #expect(reported.sendCount == 7)
        #expect(recorder.metrics?.sendCount == 7)
        #expect(recorder.events.count == 2)
    }

    @Test func `a cancelled wait throws CancellationError`() async throws {
        let recorder = recorder
        let task = Task { try await recorder.first { _ in true } }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }
}
