// SPDX-License-Identifier: MIT

import ANHTTP

/// Listens to the exchanges of a task for its readers: for those of progress, and for those of events.
///
/// The transport reports progress at most every 50 ms, so nothing here is on the way of the bytes.
struct ProgressMonitor: TransferEventSink {
    let core: TransferCore

    func receive(_ event: TransferEvent) {
        switch event {
        case .started(let request):
            core.track { state, time in
                state.events.send(.request(request))
                state.tracker.beginExchange(at: time)
            }
        case .informational(let head): core.track { state, _ in state.events.send(.informational(head)) }
        case .uploadProgress(let progress):
            core.track { state, time in state.uploads.send(state.tracker.send(progress, at: time)) }
        case .downloadProgress(let progress):
            core.track { state, time in state.downloads.send(state.tracker.receive(progress, at: time)) }
        case .finished(let metrics): core.track { state, _ in state.events.send(.metrics(metrics)) }
        case .head: break
        }
    }
}

extension TransferCore {
    /// What this exchange receives is the task's response, after so many bytes that were there before.
    func accept(offset: Int64 = 0, total: Int64? = nil) {
        track { state, time in
            state.downloads.send(state.tracker.accept(offset: offset, total: total, at: time))
            if offset > 0 { state.events.send(.continued(offset: offset, total: total)) }
        }
    }

    /// The response is complete.
    func complete(_ size: Int64) {
        track { state, _ in state.downloads.send(state.tracker.complete(size)) }
    }
}
