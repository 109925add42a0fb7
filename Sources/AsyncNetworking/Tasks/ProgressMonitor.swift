// SPDX-License-Identifier: MIT

import ANHTTP

/// Updates a task's progress and events from the events of its exchanges.
///
/// The transport reports progress at most every 50 ms, so this code does not run for each chunk.
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
    /// Marks the current exchange as the one with the task's response, whose body starts at `offset`.
    func accept(offset: Int64 = 0, total: Int64? = nil) {
        track { state, time in
            state.downloads.send(state.tracker.accept(offset: offset, total: total, at: time))
            if offset > 0 { state.events.send(.continued(offset: offset, total: total)) }
        }
    }

    /// Records that the response is complete.
    func complete(_ size: Int64) {
        track { state, _ in state.downloads.send(state.tracker.complete(size)) }
    }
}
