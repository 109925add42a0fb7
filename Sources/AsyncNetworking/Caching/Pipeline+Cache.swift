// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

extension Pipeline {
    /// Performs a call with the session's cache: answers it from stored responses, or validates or stores the response
    /// (RFC 9111).
    func answerFromCache(
        _ call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        guard let cache else { return try await perform(call, respond: respond) }
        var lookup = cacheLookup(call.request, in: cache)
        var mayWait = call.delivery != .streamed
        defer { lookup.endFlight(isAbandoned: Task.isCancelled) }
        // The entries whose body cannot be read.
        var unreadable: Set<UInt64> = []
        while true {
            let entries = await lookup.entries().filter { !unreadable.contains($0.id) }
            let decision = lookup.decide(entries, isRetry: call.attempt > 1)
            switch decision {
            case .use(let use), .useWhileValidating(let use, _):
                guard let (head, body) = await lookup.response(use, of: entries[use.index]) else {
                    unreadable.insert(entries[use.index].id)
                    continue
                }
                if case .useWhileValidating(_, let conditions) = decision {
                    validate(call, lookup, entries, conditions)
                }
                lookup.endFlight(isAbandoned: false)
                try Task.checkCancellation()
                return try await respond(head, body)
            case .refuse:
                guard lookup.request.mode != .onlyStored else { throw SessionError.notCached }
                return try await respond(lookup.refusal.head, lookup.refusal.body)
            case .forward, .validate:
                if mayWait, lookup.flight == nil, let flights = cache.flights, lookup.request.mayShareTransfer {
                    let (flight, isOwn) = flights.join(lookup.flightKey)
                    if isOwn {
                        // The previous flight may have ended after the look-up.
                        lookup.flight = flight
                    } else {
                        mayWait = try await wait(for: flight, call)
                    }
                    continue
                }
                guard let flight = lookup.flight else {
                    return try await send(call, lookup, entries, decision, respond: respond)
                }
                return try await RequestFlights.$led.withValue(RequestFlights.led + [flight]) {
                    try await send(call, lookup, entries, decision, respond: respond)
                }
            }
        }
    }

    @inline(never)
    private func cacheLookup(_ request: Request, in cache: SessionCache) -> CacheLookup {
        // What interceptors around the exchange change, such as credentials, is not visible here.
        let isIntercepted = !attemptInterceptors.isEmpty || !request.attemptInterceptors.isEmpty
        return CacheLookup(request, request.cachePolicy ?? cachePolicy, mayChangeFields: isIntercepted, in: cache)
    }

    /// Waits until another request's flight ends. Returns whether it ended without a result, because the other request
    /// was cancelled.
    private func wait(for flight: RequestFlights.Flight, _ call: PipelineCall) async throws -> Bool {
        guard RequestFlights.beginWait(for: flight) else { return false }
        defer { RequestFlights.endWait(for: flight) }
        _ = try await waiting(upTo: call.request.timeLeft) { await flight.wait() }
        try Task.checkCancellation()
        return flight.isAbandoned
    }

    /// Sends a request and responds with its response, or with the stored one that it confirms.
    private func send(
        _ call: PipelineCall, _ lookup: CacheLookup, _ entries: [CacheEntry], _ decision: CacheDecision,
        respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        switch try await exchange(call, lookup, entries, decision, respond: respond) {
        case .responded:
            return
        case .stored(let use, let entry, let metrics):
            if let (head, body) = await lookup.response(use, of: entry, validatedBy: metrics) {
                return try await respond(head, body)
            }
        case .mismatch:
            break
        }
        // The 304 was for a response that is not there any more.
        _ = try await exchange(call, lookup, [], .forward, respond: respond)
    }

    /// Performs one exchange, which is conditional if the decision is to validate.
    private func exchange(
        _ call: PipelineCall, _ lookup: CacheLookup, _ entries: [CacheEntry], _ decision: CacheDecision,
        respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws -> CacheExchangeEnd {
        var call = call
        var fallback: StoredUse?
        var isValidation = false
        if case .validate(let conditions, let use) = decision {
            for field in conditions { call.request.headers[field.name] = field.value }
            fallback = use
            isValidation = true
        }
        let start = lookup.session.now()
        var end: CacheExchangeEnd?
        do {
            try await perform(call) { head, body in
                let times = ExchangeTimes(request: start, response: lookup.session.now())
                let outcome =
                    isValidation
                    ? ValidationOutcome(
                        of: head, to: lookup.request, stored: entries.map(\.response), ifFailing: fallback)
                    : .replaced
                switch outcome {
                case .confirmed(let index):
                    _ = try await body.collect(upTo: 0)
                    let entry = await lookup.update(entries[index], from: head, times)
                    let use = StoredUse.validated(entry.response, for: lookup.request, at: times.response)
                    end = .stored(use, entry, body.metrics ?? TransferMetrics())
                case .reused(let index):
                    _ = try await body.collect(upTo: 0)
                    let use = StoredUse.validated(entries[index].response, for: lookup.request, at: times.response)
                    end = .stored(use, entries[index], body.metrics ?? TransferMetrics())
                case .notModified(let index):
                    if let index { _ = await lookup.update(entries[index], from: head, times) }
                    end = .responded
                    try await respond(head, body)
                case .mismatch:
                    end = .mismatch
                case .failed(let use):
                    end = .stored(use, entries[use.index], nil)
                case .replaced:
                    end = .responded
                    let isStored = Lock(false)
                    guard let storing = lookup.storing(head, body, times, noting: isStored) else {
                        lookup.endFlight(isAbandoned: false)
                        await lookup.noteUnstored(head, entries, times)
                        return try await respond(head, body)
                    }
                    let read = await Result { try await respond(head, storing) }
                    // The body of a redirect that is followed was not read. If it is collected, it is there already.
                    if (300..<400).contains(head.status.code), case .collected(let limit) = call.delivery {
                        _ = try? await storing.collect(upTo: limit)
                    }
                    if !isStored.withLock(\.self) {
                        let isLost = if case .failure(let error) = read { error is TransportError } else { false }
                        await lookup.supersede(head, entries, times, isLost: isLost)
                    }
                    try read.get()
                }
            }
        } catch {
            guard end == nil, let fallback, error.permitsStaleResponse else { throw error }
            return .stored(fallback, entries[fallback.index], nil)
        }
        return end ?? .responded
    }

    /// Validates a stored response in the background, unless that is being done.
    private func validate(
        _ call: PipelineCall, _ lookup: CacheLookup, _ entries: [CacheEntry], _ conditions: HTTPFields
    ) {
        guard lookup.beginValidation() else { return }
        guard let task = try? registry.begin(.data, call.request) else { return lookup.endValidation() }
        var call = call
        (call.delivery, call.events, call.monitor) = (.streamed, nil, nil)
        // The whole response is validated, even if a part of it was requested.
        for name in [HTTPField.Name.range, .ifRange, .ifNoneMatch, .ifModifiedSince] {
            call.request.headers[name] = nil
        }
        let whole = cacheLookup(call.request, in: lookup.session)
        // Ends with its exchange. A session that is shut down waits for it, as for a request of its caller.
        Task { [self, call] in
            _ = try? await exchange(call, whole, entries, .validate(conditions, ifFailing: nil)) { _, body in
                for try await _ in body {}
            }
            lookup.endValidation()
            registry.end(task.id)
        }
    }
}

/// The result of an exchange with a cache.
private enum CacheExchangeEnd {
    /// The response was passed on.
    case responded
    /// A stored response answers the request: with the metrics of a successful validation, or because the server
    /// failed.
    case stored(StoredUse, CacheEntry, TransferMetrics?)
    /// The 304 refers to no stored response.
    case mismatch
}

extension Error {
    /// Whether the server or the network failed, so that `stale-if-error` applies (RFC 5861 §4). A server that is not
    /// trusted is not a failure of this kind.
    fileprivate var permitsStaleResponse: Bool {
        switch (self as? TransportError)?.reason {
        case .timedOut, .cannotResolve, .cannotConnect, .proxy, .connectionLost, .invalidResponse, .tls(.handshake):
            return true
        default: return false
        }
    }
}

extension Result where Failure == any Error {
    /// Stores what a function returns or throws.
    fileprivate init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
