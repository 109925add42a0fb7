// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

extension Pipeline {
    /// Whether a request is answered from the session's cache or not at all.
    func acceptsOnlyStored(_ request: Request) -> Bool {
        switch request.cachePolicy ?? cachePolicy {
        case .returnCacheDontLoad: true
        case .reload, .revalidate: false
        case .protocolPolicy, .returnCacheElseLoad:
            cache != nil && request.webSocketOptions == nil && RequestDirectives(request.headers).onlyIfCached
        }
    }

    /// Answers a request from stored responses, or sends it and validates or stores the response (RFC 9111).
    func answerFromCache(_ request: Request, _ call: inout Call, _ next: Next) async throws -> OpenResponse {
        guard let cache else { return try await next(request, &call) }
        var lookup = cacheLookup(request, in: cache)
        var mayWait = call.delivery != .streamed
        defer {
            if lookup.flight?.endsLater != true { lookup.endFlight(isAbandoned: registry.isCurrentCallCancelled) }
        }
        let statuses = call.attempt > 1 ? call.retries?.plan.policy.statuses : nil
        // The entries whose body cannot be read.
        var unreadable: Set<UInt64> = []
        while true {
            let entries = await lookup.entries().filter { !unreadable.contains($0.id) }
            let decision = lookup.decide(entries, retrying: statuses)
            switch decision {
            case .use(let use), .useWhileValidating(let use, _):
                guard let response = await lookup.response(use, of: entries[use.index]) else {
                    unreadable.insert(entries[use.index].id)
                    continue
                }
                try checkCancellation()
                if case .useWhileValidating = decision {
                    validate(entries[use.index], request, next, lookup, credentialOrigin: call.credentialOrigin)
                }
                lookup.endFlight(isAbandoned: false)
                return response
            case .refuse:
                guard lookup.request.mode != .onlyStored else { throw SessionError.notCached }
                return lookup.refusal
            case .forward, .validate:
                if mayWait, lookup.flight == nil, let flights = cache.flights, lookup.request.mayShareTransfer,
                    !request.isHedge
                {
                    let (flight, isOwn) = flights.join(lookup.flightKey)
                    if isOwn {
                        // The previous flight may have ended after the look-up.
                        lookup = lookup.leading(flight)
                    } else {
                        mayWait = try await wait(for: flight, request)
                    }
                    continue
                }
                guard let flight = lookup.flight else {
                    return try await send(request, &call, next, lookup, entries, decision)
                }
                return try await WaitGraph.leading(flight) {
                    try await send(request, &call, next, lookup, entries, decision)
                }
            }
        }
    }

    @inline(never)
    private func cacheLookup(_ request: Request, in cache: SessionCache) -> CacheLookup {
        // What interceptors around the exchange change, such as credentials, is not visible here.
        var change = FieldChange.none
        for interceptor in [attemptInterceptors, request.attemptInterceptors].joined() {
            guard let preserving = interceptor as? any FieldPreservingInterceptor else {
                change = .any
                break
            }
            if preserving.addsFields { change = .additions }
        }
        return CacheLookup(request, request.cachePolicy ?? cachePolicy, laterChange: change, in: cache)
    }

    /// Waits until another request's flight ends, or would do so only after this request. Returns whether it ended without
    /// a result, because the other request was cancelled.
    @inline(never)
    private func wait(for flight: RequestFlights.Flight, _ request: Request) async throws -> Bool {
        guard let waiting = WaitGraph.begin(for: flight) else { return false }
        defer { waiting.end() }
        // After the time for which the request would wait for its own exchange, it makes one.
        let limit = [request.timeLeft, request.options?.timeouts.total].compactMap(\.self).min()
        let end = try await self.waiting(upTo: limit) { await flight.wait(waiting) }
        try Task.checkCancellation()
        try await request.checkToken()
        return end == .abandoned
    }

    /// Sends a request and returns its response, or the stored one that it confirms.
    @inline(never)
    private func send(
        _ request: Request, _ call: inout Call, _ next: Next, _ lookup: CacheLookup, _ entries: [CacheEntry],
        _ decision: CacheDecision
    ) async throws -> OpenResponse {
        if case .validate(let conditions, let fallback) = decision,
            let response = try await confirm(request, &call, next, lookup, entries, conditions, ifFailing: fallback)
        {
            return response
        }
        let (response, times) = try await exchange(request, &call, next, lookup)
        return try await store(response, of: &call, lookup, entries, times) ?? response
    }

    /// Sends a conditional request and returns its response, or the stored one that it confirms; `nil` if that is not
    /// there any more.
    @inline(never)
    private func confirm(
        _ request: Request, _ call: inout Call, _ next: Next, _ lookup: CacheLookup, _ entries: [CacheEntry],
        _ conditions: HTTPFields, ifFailing fallback: StoredUse?
    ) async throws -> OpenResponse? {
        switch try await validate(request, &call, next, lookup, entries, conditions, ifFailing: fallback) {
        case .received(let response), .storing(let response): return response
        case .confirmed(let confirmed, let head, let times, let metrics):
            let updated = lookup.updated(confirmed[0], from: head, times)
            let use = StoredUse.validated(updated, for: lookup.request, at: times.response)
            // The body is open before the update, which may remove its file.
            let response = await lookup.response(use, of: confirmed[0], updated: updated, validatedBy: metrics)
            await lookup.update(confirmed, from: head, times)
            if let response { return response }
        case .stored(let use, let entry, let metrics):
            if let response = await lookup.response(use, of: entry, validatedBy: metrics) { return response }
        }
        try await request.checkToken()
        return nil
    }

    /// Sends a request, and returns its response and the times of the exchange that led to it, without others and waits
    /// before it (RFC 9111 §4.2.3), unless an interceptor has made the head.
    @inline(never)
    private func exchange(
        _ request: Request, _ call: inout Call, _ next: Next, _ lookup: CacheLookup
    ) async throws -> (OpenResponse, ExchangeTimes) {
        let start = lookup.session.beginSending()
        let response = try await next(request, &call)
        let sent = response.head.sending ?? start
        return (
            response,
            ExchangeTimes(
                request: CacheTime(milliseconds: sent.time), order: sent.order, response: lookup.session.now())
        )
    }

    /// Sends a conditional request, and once more without conditions after a 304 for a response that is not there any
    /// more.
    @inline(never)
    private func validate(
        _ request: Request, _ call: inout Call, _ next: Next, _ lookup: CacheLookup, _ entries: [CacheEntry],
        _ conditions: HTTPFields, ifFailing fallback: StoredUse?
    ) async throws -> Validation {
        var conditional = request
        for field in conditions { conditional.headers[field.name] = field.value }
        // A stored response is better than a wait.
        if fallback != nil { conditional.waitsForConnectivity = false }
        let exchangeCount = call.exchangeCount
        do {
            // A refresh may wait for a route without a limit.
            if conditional.waitsForConnectivity == false, request.token?.standing == .due,
                try await lacksRoute(conditional)
            {
                throw TransportError(.cannotConnect(.unreachable))
            }
            let (response, times) = try await exchange(conditional, &call, next, lookup)
            let head = response.head
            let outcome = ValidationOutcome(
                of: head, to: lookup.request, stored: entries.map(\.response), ifFailing: fallback)
            switch outcome {
            case .confirmed(let indices):
                return .confirmed(indices.map { entries[$0] }, head, times, try await end(of: response, &call))
            case .reused(let index):
                let metrics = try await end(of: response, &call)
                let use = StoredUse.validated(entries[index].response, for: lookup.request, at: times.response)
                return .stored(use, entries[index], metrics)
            case .notModified(let indices):
                await lookup.update(indices.map { entries[$0] }, from: head, times)
                return .received(response)
            case .mismatch where conditions.isEmpty:
                return .received(response)
            case .mismatch: break
            case .failed(let use):
                await call.exchanges.close()
                return .stored(use, entries[use.index], nil)
            case .replaced:
                return try await store(response, of: &call, lookup, entries, times).map { .storing($0) }
                    ?? .received(response)
            }
        } catch {
            let isUnsent =
                request.token?.standing == .unrefreshed && call.exchangeCount == exchangeCount
                && !registry.isCurrentCallCancelled
            guard let fallback, isUnsent || error.permitsStaleResponse else { throw error }
            return .stored(fallback, entries[fallback.index], nil)
        }
        try await request.checkToken()
        return try await validate(request, &call, next, lookup, entries, [:], ifFailing: fallback)
    }

    /// Reads the end of a 304, closes it, and returns its metrics.
    @inline(never)
    private func end(of response: OpenResponse, _ call: inout Call) async throws -> TransferMetrics {
        _ = try await response.body.collect(upTo: 0)
        await call.exchanges.close()
        return response.body.metrics ?? TransferMetrics()
    }

    /// Returns a response with a body that is stored when it is read; `nil` if it is not stored. One that is collected has
    /// been stored, unless it may be discarded and is not complete.
    @inline(never)
    private func store(
        _ response: OpenResponse, of call: inout Call, _ lookup: CacheLookup, _ entries: [CacheEntry],
        _ times: ExchangeTimes
    ) async throws -> OpenResponse? {
        guard let storing = lookup.storing(response, times) else {
            lookup.endFlight(isAbandoned: false)
            await lookup.noteUnstored(response.head, entries, times)
            return nil
        }
        var stored = response
        call.exchanges.own(storing)
        switch call.delivery {
        case .collected(let limit) where !response.head.mayBeDiscarded || response.body.isWhole:
            // Whoever shares the transfer waits until the response is stored.
            do {
                let data = try await storing.collect(upTo: limit)
                stored.body = storing.collected(as: data)
            } catch {
                guard response.head.mayBeDiscarded, !(error is CancellationError) else { throw error }
                // Only who reads the body needs it.
                stored.body = storing.reading(FailingBodySource(base: storing, error: error))
            }
            await storing.close()
        case .collected:
            // It is stored when it is read, and given up when it is closed.
            lookup.flight?.endLater()
            stored.body = storing
        case .streamed:
            stored.body = storing
        }
        return stored
    }

    /// The time limit of a validation in the background for a request without a total time of its own.
    private static let longestValidation = Duration.seconds(300)

    /// Validates a stored response in the background, unless that is being done or was just done.
    @inline(never)
    private func validate(
        _ entry: CacheEntry, _ request: Request, _ next: Next, _ lookup: CacheLookup, credentialOrigin: Origin?
    ) {
        guard lookup.beginValidation() else { return }
        guard let task = try? registry.begin(.data, request) else { return lookup.endValidation() }
        var request = request.outlivingCall()
        // The whole response is validated, even if a part of it was requested.
        for name in [HTTPField.Name.range, .ifRange, .ifNoneMatch, .ifModifiedSince] { request.headers[name] = nil }
        request.waitsForConnectivity = false
        // Only a session that is shut down waits for it.
        if request.options?.timeouts.total == nil {
            request.timeout = Self.longestValidation
            request.startTimeout(on: clock)
        }
        let whole = cacheLookup(request, in: lookup.session)
        // Ends with its exchange. A session that is shut down waits for it, as for a request of its caller.
        Task { [self, request] in
            var call = Call(of: task, delivery: .streamed, start: uptime.elapsed)
            call.credentialOrigin = credentialOrigin
            // Another validation may have ended between the look-up and the beginning of this one.
            let entries = await whole.entries()
            switch whole.decide(entries, retrying: nil, validatesInBackground: false) {
            case .validate(let conditions, let fallback):
                // The stored response stays if the server fails.
                switch try? await validate(request, &call, next, whole, entries, conditions, ifFailing: fallback) {
                case .confirmed(let confirmed, let head, let times, _):
                    await whole.update(confirmed, from: head, times)
                case .storing(let response):
                    var left = (request.options ?? options.value).maximumBodySize
                    do {
                        for try await chunk in response.body {
                            left -= chunk.count
                            if left < 0 { break }
                        }
                    } catch {}
                case .received(let response):
                    if response.head.status == .unauthorized { lookup.noteRefusal(of: entry) }
                case .stored, nil: break
                }
            case .use, .useWhileValidating, .forward, .refuse: break
            }
            await call.exchanges.close()
            lookup.endValidation()
            registry.end(task.id)
        }
    }
}

/// The result of a conditional request.
private enum Validation {
    /// Another response, or one that answers the program's own conditions.
    case received(OpenResponse)
    /// Another response, which is stored when it is read.
    case storing(OpenResponse)
    /// A 304 with a head confirms stored responses, the first of which answers the request.
    case confirmed([CacheEntry], ResponseHead, ExchangeTimes, TransferMetrics)
    /// A stored response, which is not updated, answers the request: with the metrics of a successful validation, or
    /// because the server failed.
    case stored(StoredUse, CacheEntry, TransferMetrics?)
}

/// A body that could not be received.
private struct FailingBodySource: FileBodySource {
    let base: ResponseBody
    let error: any Error

    func next() async throws -> Data? { throw error }
}

extension Error {
    /// Whether the server or the network failed, so that `stale-if-error` applies (RFC 5861 §4). A server that is not
    /// trusted is not a failure of this kind, nor is a proxy that asks for a credential.
    fileprivate var permitsStaleResponse: Bool {
        // The request of a refresh is one of a session.
        if case .transport(let error)? = self as? SessionError { return error.permitsStaleResponse }
        return RetryPolicy.Failure(self) != nil || isUnsentForNow
    }
}
