// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The requests whose responses may be shared: identical requests wait for the first one to be stored.
typealias RequestFlights = Flights<CacheLookup.FlightKey, CacheLookup.FlightEnd>

/// A request's use of the session's cache: reads the stored responses, and stores and updates them.
final class CacheLookup: Sendable {
    let session: SessionCache
    /// The request as the rules see it.
    let request: CacheRequest
    /// The flight that the request leads; `nil` if it leads none.
    let flight: RequestFlights.Flight?
    private let sent: Request
    private let key: CacheKey

    init(_ request: Request, _ policy: CachePolicy, laterChange: FieldChange, in session: SessionCache) {
        self.session = session
        sent = request
        self.request = session.request(request, policy, laterChange: laterChange)
        key = CacheKey(target: self.request.target)
        flight = nil
    }

    private init(_ lookup: CacheLookup, leading flight: RequestFlights.Flight) {
        (session, request, sent) = (lookup.session, lookup.request, lookup.sent)
        (key, self.flight) = (lookup.key, flight)
    }

    /// Returns the look-up of a request that leads a flight.
    func leading(_ flight: RequestFlights.Flight) -> CacheLookup { CacheLookup(self, leading: flight) }

    /// Identifies the requests that may share the transfer of this one.
    var flightKey: FlightKey {
        var timeouts = sent.sharedOptions?.value.timeouts
        // It depends on the time left. Each request waits no longer than its own.
        timeouts?.total = nil
        return FlightKey(
            key: key, owner: request.owner, headers: request.headers, timeouts: timeouts,
            speedLimits: sent.sharedOptions?.value.speedLimits, waitsForConnectivity: sent.waitsForConnectivity)
    }

    /// The properties of requests that share a transfer.
    struct FlightKey: Hashable, Sendable {
        let key: CacheKey
        let owner: CacheOwner
        /// The header fields, of which the response may depend on any.
        let headers: HTTPFields
        /// How long the transfer may take.
        let timeouts: Timeouts?
        let speedLimits: [SpeedLimit]?
        let waitsForConnectivity: Bool?
    }

    /// The end of a shared transfer, after which the waiting requests look at the cache again.
    enum FlightEnd: Sendable {
        case over
        /// The request was cancelled.
        case abandoned
    }

    /// Ends the flight that the request leads.
    @inline(never)
    func endFlight(isAbandoned: Bool) {
        if let flight { session.flights?.end(flight, flightKey, isAbandoned ? .abandoned : .over) }
    }

    /// Returns the stored responses for the request's target.
    @inline(never)
    func entries() async -> [CacheEntry] {
        guard session.cache.mustRead(key) else { return session.cache.entries(key) }
        return await withFiles { session.cache.entries(key) }
    }

    /// Runs a function that may read or write files, which is not done on the executors of the caller.
    private func withFiles<Value: Sendable>(_ body: @Sendable () -> Value) async -> Value {
        guard session.cache.hasDirectory else { return body() }
        return await onGlobalExecutor { body() }
    }

    /// Decides how to answer the request from the stored responses.
    ///
    /// - Parameters:
    ///   - statuses: The statuses for which the request is sent again, besides failures; `nil` if it is sent for the first
    ///     time. Such a response may be stored, and is then no answer.
    ///   - validatesInBackground: Whether a response may be used before it is validated, `true` by default.
    @inline(never)
    func decide(
        _ entries: [CacheEntry], retrying statuses: Set<Int>?, validatesInBackground: Bool = true
    ) -> CacheDecision {
        let (stored, now) = (entries.map(\.response), session.now())
        let decision = CacheDecision(
            for: request, stored: stored, now: now, validatesInBackground: validatesInBackground)
        switch decision {
        case .use(let use), .useWhileValidating(let use, _):
            let entry = entries[use.index]
            if let statuses, !request.directives.onlyIfCached {
                let status = entry.response.status.code
                if status >= 400 || statuses.contains(status) { return .forward }
            }
            guard case .useWhileValidating = decision, session.cache.isRefused(entry, key) else { return decision }
            // What was refused in the background may be answered here, with a new token for example.
            return CacheDecision(for: request, stored: stored, now: now, validatesInBackground: false)
        case .validate, .forward, .refuse:
            return decision
        }
    }

    // MARK: Responding

    /// Returns the response for a use of a stored one; `nil` if its body turned out to be damaged.
    ///
    /// - Parameters:
    ///   - updated: The stored response as a validation has updated it; `nil` without one.
    ///   - metrics: The metrics of the validation.
    @inline(never)
    func response(
        _ use: StoredUse, of entry: CacheEntry, updated: StoredResponse? = nil,
        validatedBy metrics: TransferMetrics? = nil
    ) async -> OpenResponse? {
        let stored = updated ?? entry.response
        let shared = metrics.map { Shared($0.from(.validated)) } ?? (use.isStale ? Self.stale : Self.cached)
        let ending = ResponseEnding(trailers: stored.trailers(for: use), metrics: shared)
        let head = stored.head(for: use, isValidated: metrics != nil, at: sent.url)
        let body: ResponseBody? = await withFiles {
            switch use.part {
            case .head, .notModified:
                session.cache.noteUse(of: entry, key)
                return ResponseBody(Data(), ending: ending)
            case .whole: return session.cache.body(of: entry, key, nil, ending: ending)
            case .range(let range): return session.cache.body(of: entry, key, range, ending: ending)
            }
        }
        guard var body else { return nil }
        body.origin = shared.value.source
        body.isReplaced = stored.isReplaced
        return OpenResponse(head: head, body: body)
    }

    private static let cached = Shared(TransferMetrics().from(.cache))
    private static let stale = Shared(TransferMetrics().from(.stale))

    /// The response to a request that accepts only stored ones (RFC 9111 §5.2.1.7).
    @inline(never) var refusal: OpenResponse {
        var body = ResponseBody(Data(), ending: ResponseEnding(trailers: [:], metrics: Self.cached))
        body.origin = .cache
        return OpenResponse(head: ResponseHead(status: .gatewayTimeout, url: sent.url), body: body)
    }

    // MARK: Background

    /// Returns whether the target may be validated in the background: not if that is being done already.
    func beginValidation() -> Bool { session.state.withLock { $0.validations.insert(key).inserted } }

    /// Ends a validation in the background.
    func endValidation() { session.state.withLock { _ = $0.validations.remove(key) } }

    /// Records that a validation in the background needs a caller: for whom a new token can be obtained because the server
    /// has refused the credentials, or who decides whether the response is stored. The next one is made for a caller.
    func noteRefusal(of entry: CacheEntry) { session.cache.noteRefusal(of: entry, key) }

    // MARK: Changes

    /// Returns a stored response as a 304 or a response to HEAD updates it.
    func updated(_ entry: CacheEntry, from head: ResponseHead, _ times: ExchangeTimes) -> StoredResponse {
        var response = entry.response
        let request = session.sent(sent, request)
        response.update(from: head, to: request, requestTime: times.request, responseTime: times.response)
        let owner = session.ownerOfResponse(to: request, head)
        return owner == request.owner.session ? response.owned(by: owner) : response
    }

    /// Updates stored responses from a 304 or a response to HEAD.
    @inline(never)
    func update(_ entries: [CacheEntry], from head: ResponseHead, _ times: ExchangeTimes) async {
        for entry in entries {
            let updated = entry.with(updated(entry, from: head, times), order: times.order)
            await withFiles {
                if Storability.permitsKeeping(head) {
                    guard !request.directives.noStore else { return }
                    let isUpdated = session.cache.update(entry, to: updated, key)
                    // One that is not validated before its next use could contradict the update.
                    if !isUpdated, entry.response.answersAtOnce(at: times.response) {
                        session.cache.remove(entry, key)
                    }
                } else {
                    // A 304 with no-store ends the storage.
                    session.cache.remove(entry, key)
                }
            }
        }
    }

    /// Changes the stored responses because of a response that is not stored itself.
    @inline(never)
    func noteUnstored(_ head: ResponseHead, _ entries: [CacheEntry], _ times: ExchangeTimes) async {
        let targets = Invalidation.targets(of: head, to: request, at: sent.url)
        if !targets.isEmpty {
            await withFiles {
                for target in targets { session.cache.removeEntries(target: target, until: times.response) }
            }
        }
        for change in StoredChange.after(head, toHead: request, stored: entries.map(\.response)) {
            switch change {
            case .update(let index): await update([entries[index]], from: head, times)
            case .invalidate(let index):
                let old = entries[index]
                await withFiles {
                    let invalidated = old.with(old.response.invalidated(), order: old.order)
                    if !session.cache.update(old, to: invalidated, key) {
                        session.cache.remove(old, key)
                    }
                }
            }
        }
        await supersede(head, times, isVariant: false)
    }

    /// Returns the body of a response as one that is stored while it is read; `nil` if the response is not stored.
    ///
    /// If it is not stored in the end, because it is too large, was refused, or its reader has stopped, the stored
    /// responses that it supersedes are removed when it is closed; unless it was refused, not one with the same tag. If
    /// reading fails or is cancelled, none is: a stored one may have answered instead, or another response to the same
    /// call may be stored.
    @inline(never)
    func storing(_ response: OpenResponse, _ times: ExchangeTimes) -> ResponseBody? {
        let head = response.head
        // What the program changes may make it useful.
        guard willCache != nil || acceptsStale || Storability.hasCachingFields(head),
            Storability.isStorable(head, to: request)
        else { return nil }
        let request = session.sent(sent, request)
        let stored = StoredResponse(
            head, to: request, requestTime: times.request, responseTime: times.response,
            owner: session.ownerOfResponse(to: request, head), isReplaced: response.body.isReplaced)
        guard willCache != nil || Storability.isUseful(stored, acceptsStale: acceptsStale) else { return nil }
        let length = stored.isDecoded || stored.isReplaced ? nil : head.contentLength
        return response.body.reading(
            StoringBodySource(response.body, session.cache.writer(key), expected: length) { [self] body, ending in
                await store(stored.ended(ending.trailers, bodyLength: body.length), body, head, times)
            } notStored: { [self] reason in
                let isCancelled = isCancelled
                switch reason {
                // The reader may be cancelled between two chunks.
                case .unfinished where isCancelled: break
                case .unfinished: await supersede(head, times, keepingSameTag: true)
                case .refused: await supersede(head, times)
                case .failed: break
                }
                endFlight(isAbandoned: isCancelled)
            })
    }

    /// Whether the call is cancelled.
    private var isCancelled: Bool { TaskRegistry(state: session.state).isCurrentCallCancelled }

    private var willCache: (@Sendable (CacheProposal) async -> CacheProposal?)? { sent.willCache ?? session.willCache }

    /// Whether the request accepts a stale response.
    private var acceptsStale: Bool { request.directives.maxStale != nil }

    /// Removes the stored responses that a response supersedes although it was not stored.
    ///
    /// - Parameters:
    ///   - isVariant: Whether those with the variant of the response are superseded, too.
    ///   - keepsSameTag: Whether one with the same tag stays, which is still current unless the program refused to store
    ///     the response.
    private func supersede(
        _ head: ResponseHead, _ times: ExchangeTimes, isVariant: Bool = true, keepingSameTag keepsSameTag: Bool = false
    ) async {
        guard Storability.replacesStored(head, to: request), session.cache.hasEntries(key) else { return }
        let new = entry(for: head, times)
        await withFiles {
            session.cache.supersede(key, by: new) { old in
                CacheDecision.isReplaced(old, by: isVariant ? new.response : nil, to: request)
                    && !(keepsSameTag && old.hasSameTag(as: new.response))
            }
        }
    }

    /// Returns an entry for a response without its body.
    private func entry(for head: ResponseHead, _ times: ExchangeTimes) -> CacheEntry {
        let request = session.sent(sent, request)
        let response = StoredResponse(
            head, to: request, requestTime: times.request, responseTime: times.response,
            owner: session.ownerOfResponse(to: request, head))
        return CacheEntry(response, body: .memory(Data()), order: times.order)
    }

    /// Stores a response with its complete body; returns the reason if it is not stored.
    private func store(
        _ response: StoredResponse, _ body: CacheEntry.Body, _ head: ResponseHead, _ times: ExchangeTimes
    ) async -> StoringBodySource.Obstacle? {
        guard let flight else { return await insert(response, body, head, times) }
        // Requests that `willCache` sends must not wait for this transfer.
        return await WaitGraph.leading(flight) { await insert(response, body, head, times) }
    }

    @inline(never)
    private func insert(
        _ response: StoredResponse, _ body: CacheEntry.Body, _ head: ResponseHead, _ times: ExchangeTimes
    ) async -> StoringBodySource.Obstacle? {
        var entry = CacheEntry(response, body: body, order: times.order)
        if let willCache {
            guard let data = await session.cache.takeBody(body, key) else { return .unfinished }
            guard var accepted = await willCache(CacheProposal(request: sent, head: head, body: data)) else {
                // A decision that was waited for may be `nil` because the call is cancelled.
                return isCancelled ? .failed : .refused
            }
            guard !accepted.keepsStored else {
                await entries().filter { CacheDecision.isReplaced($0.response, by: response, to: request) }
                    .forEach(noteRefusal)
                return .failed
            }
            guard Storability.isStorable(accepted.head, to: request) else { return .refused }
            if accepted.body != data, accepted.head.headers.contains(.contentLength) {
                accepted.head.headers[.contentLength] = String(accepted.body.count)
            }
            let stored = StoredResponse(
                accepted.head, trailers: response.trailers, bodyLength: Int64(accepted.body.count), to: request,
                requestTime: times.request, responseTime: times.response, owner: response.owner,
                isReplaced: response.isReplaced || accepted.body != data)
            guard Storability.isUseful(stored, acceptsStale: acceptsStale) else { return .refused }
            let writer = session.cache.writer(key)
            await writer.append(Data(accepted.body))
            guard let body = await writer.finish(expected: nil) else { return .unfinished }
            entry = CacheEntry(stored, body: body, order: times.order)
        }
        await withFiles { [entry] in
            session.cache.insert(entry, key) {
                CacheDecision.isReplaced($0, by: entry.response, to: request)
            }
        }
        endFlight(isAbandoned: false)
        return nil
    }
}

/// The times of an exchange.
struct ExchangeTimes: Sendable {
    /// The time at which the request was sent.
    let request: CacheTime
    /// The position of the request; see ``ANCache/CacheEntry/order``.
    let order: UInt64
    /// The time at which the head of the response was received.
    let response: CacheTime
}

extension TransferMetrics {
    /// Returns the metrics with a source.
    fileprivate func from(_ source: ResponseSource) -> TransferMetrics {
        var copy = self
        copy.source = source
        return copy
    }
}

/// A response body that is stored while it is read. A body that is not read to its end is not stored.
///
/// A chunk is written while the reader handles it and the next one arrives.
private actor StoringBodySource: FileBodySource {
    let base: ResponseBody
    private let writer: CacheWriter
    private let expected: Int64?
    private let store: @Sendable (CacheEntry.Body, ResponseEnding) async -> Obstacle?
    private let notStored: @Sendable (Obstacle) async -> Void
    /// The writing of the last chunk.
    private var writing: Task<Void, Never>?
    /// The reason why the body is not stored; `nil` if it was.
    private var obstacle: Obstacle? = .unfinished
    private var isClosed = false

    /// A reason why a body is not stored.
    enum Obstacle: Sendable {
        /// Its reader has not read it to the end, or it cannot be written.
        case unfinished
        /// The program has refused it.
        case refused
        /// Reading has failed or was cancelled.
        case failed
    }

    init(
        _ base: ResponseBody, _ writer: CacheWriter, expected: Int64?,
        store: @escaping @Sendable (CacheEntry.Body, ResponseEnding) async -> Obstacle?,
        notStored: @escaping @Sendable (Obstacle) async -> Void
    ) {
        self.base = base
        self.writer = writer
        self.expected = expected
        self.store = store
        self.notStored = notStored
    }

    nonisolated func willBeWritten(to path: String) async {
        await writer.willBeWritten(to: path)
    }

    func next() async throws -> Data? {
        let chunk = try await reading { try await base.next() }
        await writing?.value
        guard let chunk else {
            await finish()
            return nil
        }
        // Ends when the chunk is written, which the next call and the end of the exchange await.
        writing = Task { [writer] in await writer.append(chunk) }
        return chunk
    }

    func collect(upTo limit: Int) async throws -> Data {
        let data = try await reading { try await base.collect(upTo: limit) }
        await writing?.value
        await writer.append(data)
        await finish()
        return data
    }

    /// Reads bytes, and notes a failure, other than that there are more than the reader accepts.
    private func reading<Value: Sendable>(_ read: () async throws -> Value) async throws -> Value {
        do {
            return try await read()
        } catch {
            if case .responseTooLarge = (error as? TransportError)?.reason {} else { obstacle = .failed }
            throw error
        }
    }

    private func finish() async {
        guard let ending = base.ending, let body = await writer.finish(expected: expected) else { return }
        obstacle = await store(body, ending)
    }

    func close() async {
        await base.close()
        let isFirst = !isClosed
        isClosed = true
        await writing?.value
        if isFirst, let obstacle { await notStored(obstacle) }
    }
}
