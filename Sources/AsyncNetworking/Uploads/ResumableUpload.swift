// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials
import HTTPTypes

/// The decisions of a resumable upload, by either protocol: which request comes next, and what a response means.
///
/// | exchange | response | next |
/// |---|---|---|
/// | discover | of a tus server, or of another one | create |
/// | create | all bytes were sent, 2xx | the upload has this response |
/// | create | 2xx with the URL of the upload | append |
/// | locate | 2xx with an offset | append from there; the bytes before it are never sent again |
/// | locate, append | 404 or 410; 403 of tus without an offset | create: the server has forgotten the upload |
/// | append | 2xx, not all bytes were sent | append |
/// | append | 409 | append from the offset in the response, or locate |
/// | append | 460 of tus: the checksum is wrong | wait, locate, append |
/// | create, append | 413 | a smaller part |
/// | any | 408, 423, 425, 429, or 5xx except 501 and 505, or none | wait, then locate, or discover or create if the URL of the upload is unknown |
/// | any | another one, or any with `Upload-Complete: ?1` | the upload has this response |
///
/// Each exchange must bring the upload forward, or is limited in number, so that no server keeps the client busy. The policy
/// limits the number of waits.
package struct ResumableUpload: Sendable {
    /// The number of bytes of the whole.
    package let length: Int64
    private let options: UploadOptions
    /// Whether the request of the program is idempotent.
    private let isIdempotent: Bool
    /// A checksum of the request's `Idempotency-Key`; `nil` for none.
    private let key: UInt64?
    /// Whether the server recognizes by the key that the upload was created before: not one that had another key.
    private var isRecognized: Bool
    /// The value of `Upload-Metadata` (tus).
    private let metadata: String?

    /// The upload on the server; `nil` before the server has told its URL.
    package private(set) var known: Known?
    /// What was known of an upload that the server has denied (403), which may be due to the credentials; until another
    /// one is created, or that is rejected.
    private var denied: Known?
    /// The number of bytes that the server has, as far as it is known.
    package private(set) var offset: Int64 = 0
    /// The highest offset since the upload was created. If it grows, the upload makes progress.
    package private(set) var highestOffset: Int64 = 0
    /// The end of the bytes that were ever sent to this upload, possibly by an earlier process or call, which a server
    /// recognizes.
    private var sentEnd: Int64
    private var uploadProtocol: UploadProtocol?
    /// The extensions of the server (tus).
    private var (digest, canBeCancelled): (UploadDigest?, Bool)
    private var limits = UploadLimits()
    /// The maximum size of a part that did not lead to a 413.
    private var partLimit = Int64.max

    private var exchange: UploadExchange?
    /// Whether the last bytes were sent, and the server has not answered since.
    private var mayBeComplete = false { didSet { known?.mayBeComplete = mayBeComplete } }
    /// Whether that was so before the current request was sent.
    private var mightBeCompleteBefore = false
    /// Whether the server has all bytes, and is asked for its response again.
    private var isReplaying = false
    /// The numbers of exchanges since the last progress or wait, and of times that the server has forgotten the upload.
    private var (turns, restarts) = (0, 0)
    /// Whether the server has announced its extensions.
    private var isDiscovered = false
    /// Whether it is known that the server follows the draft. Another one would take the first part for the whole.
    private var isSupported: Bool

    /// The URL of an upload on the server, with what is necessary to continue it.
    package struct Known: Codable, Hashable, Sendable {
        package let uploadProtocol: UploadProtocol
        package let url: URL
        /// The time when the upload expires, in seconds since 1970; `nil` if that is unknown.
        package var expiry: Int64?
        fileprivate let digest: UploadDigest?
        fileprivate let canBeCancelled: Bool
        /// A checksum of the `Idempotency-Key` with which it was created; `nil` for none.
        fileprivate let key: UInt64?
        /// Whether the last bytes were sent, and the server has not answered since.
        fileprivate(set) var mayBeComplete: Bool
    }

    /// The next step of an upload.
    package enum Action: Hashable, Sendable {
        /// Sends a request.
        case send(UploadMessage)
        /// Waits before ``ResumableUpload/resume(now:)``, if the policy permits.
        case wait
        /// Ends the upload with the last response, which may be a rejection.
        case finish
        /// Ends the upload, which is complete, with the response to ``UploadExchange/locate``: the server does not repeat
        /// its own.
        case finishAsLocated
        /// Ends the upload with an error.
        case fail(SessionError.UploadFailure)

        /// Whether the upload has ended without an error.
        var isEnd: Bool { self == .finish || self == .finishAsLocated }
    }

    /// Creates an upload before its first request.
    ///
    /// - Parameters:
    ///   - length: The number of bytes of the whole.
    ///   - options: The options of the program.
    ///   - known: What an earlier process knew; `nil` for a new upload.
    ///   - mayRepeatCreation: Whether the method of the program's request is idempotent. Uploads by tus are always created
    ///     by POST.
    ///   - key: A checksum of the `Idempotency-Key` by which the server recognizes that the upload was created before; `nil` for
    ///     none.
    ///   - metadata: The value of `Upload-Metadata` (tus); `nil` for none.
    package init(
        length: Int64, options: UploadOptions = .resumable, continuing known: Known? = nil,
        mayRepeatCreation: Bool = false, key: UInt64? = nil, metadata: String? = nil
    ) {
        self.length = length
        self.options = options
        self.known = known
        (isIdempotent, self.key) = (mayRepeatCreation, key)
        isRecognized = key != nil && (known == nil || known?.key == key)
        self.metadata = metadata
        uploadProtocol = known?.uploadProtocol ?? options.uploadProtocol
        isSupported = uploadProtocol != nil
        (digest, canBeCancelled) = (known?.digest, known?.canBeCancelled ?? false)
        mayBeComplete = known?.mayBeComplete ?? false
        sentEnd = known == nil && key == nil ? 0 : length
    }

    /// Whether the upload may be created a second time if the server has perhaps completed the first one.
    private var mayRepeatCreation: Bool { isRecognized || isIdempotent && uploadProtocol != .tus }

    // MARK: Events

    /// Returns the first step, or the one after a wait.
    ///
    /// - Parameter now: The current time in seconds since 1970.
    package mutating func resume(now: Int64) -> Action {
        turns = 0
        if let known {
            // The clock may be wrong: an upload that may be complete is asked for.
            if let expiry = known.expiry, now >= expiry, !mayBeComplete { return createAgain() }
            return send(.locate)
        }
        // The extensions of a tus server are announced.
        guard let uploadProtocol, uploadProtocol == .ietf || isDiscovered else { return send(.discover) }
        return create()
    }

    /// Handles an interim response to the current request: a 104 of the draft's interop version (draft §5).
    package mutating func receiveInterim(_ head: ResponseHead, now: Int64) {
        guard uploadProtocol == .ietf, head.status.code == 104, let range = exchange?.range,
            head.headers.structuredItem(.uploadInteropVersion) == .integer(Self.interopVersion)
        else { return }
        let reply = UploadReply(head, by: .ietf, now: now)
        learn(from: reply)
        if case .create = exchange, known == nil, let url = reply.location { note(url, reply) }
        isSupported = true
        // The rest of the content may be on its way.
        if let offset = reply.offset, offset <= range.upperBound, offset > self.offset { advance(to: offset) }
    }

    /// Handles the failure of the current request, and returns whether the upload may go on after a wait.
    ///
    /// - Parameters:
    ///   - mayHaveReachedServer: Whether the server may have seen the request.
    ///   - sentAll: Whether the content was sent to its end.
    package mutating func interrupt(mayHaveReachedServer: Bool, sentAll: Bool) -> Bool {
        // Content of no bytes has been sent with the head.
        if let range = exchange?.range {
            if range.isEmpty ? !mayHaveReachedServer : !sentAll {
                mayBeComplete = range.isEmpty && mightBeCompleteBefore
            }
        }
        return mayHaveReachedServer ? canGoOn : true
    }

    /// Whether the upload can go on after its request was interrupted: an upload whose URL is unknown must be created
    /// again. One of tus without content would perhaps be complete twice.
    private var canGoOn: Bool {
        guard case .create = exchange, known == nil else { return true }
        return uploadProtocol == .tus && length > 0 || mayRepeatCreation
    }

    /// Whether a response asks to send the request again later. A server does not learn a method or a version by waiting.
    private static func isBusy(_ status: Int) -> Bool {
        [408, 423, 425, 429].contains(status) || (500...599).contains(status) && status != 501 && status != 505
    }

    /// Handles the response to the current request.
    ///
    /// - Parameter now: The current time in seconds since 1970.
    package mutating func receive(_ head: ResponseHead, now: Int64) -> Action {
        guard let exchange else { return .finish }
        if case .discover = exchange { return discover(head) }
        guard let uploadProtocol, exchange != .cancel else { return .finish }
        let reply = UploadReply(head, by: uploadProtocol, now: now)
        if uploadProtocol == .ietf, exchange != .locate, reply.isComplete == true {
            let isRepeated = isRecognized && exchange.isCreation
            if 200...299 ~= reply.status, let range = exchange.range, range.upperBound < length, !isRepeated {
                return .fail(Self.early)
            }
            return end(reply)
        }
        learn(from: reply)
        if let maximum = limits.maximumSize, length > maximum, offset < length {
            return .fail(.tooLarge(maximum: maximum))
        }
        // The server has not taken the content.
        if exchange != .locate, (400...499).contains(reply.status) { mayBeComplete = false }
        // Whether the request was one to the URL of the upload.
        let isOfUpload = exchange == .locate || exchange.isAppend
        switch reply.status {
        case 200...299:
            switch exchange {
            case .create(let range): return created(reply, range)
            case .append(let range): return appended(reply, range)
            case .locate, .discover, .cancel: return located(reply)
            }
        case 404 where isOfUpload, 410 where isOfUpload:
            return isReplaying ? endAsLocated() : createAgain()
        case 403 where isOfUpload && uploadProtocol == .tus && reply.offset == nil:
            // Whether it was complete is not known before access is permitted again.
            return mayBeComplete && !mayRepeatCreation ? end(reply) : createAgain(isDenied: true)
        case 400...499 where isReplaying, 501 where isReplaying, 505 where isReplaying:
            return endAsLocated()
        case 409 where exchange.isAppend:
            guard uploadProtocol == .ietf, let offset = reply.offset.flatMap(valid) else { return send(.locate) }
            acknowledge(offset)
            return goOn()
        case 413:
            return shrink(exchange, after: reply)
        case 409 where isOfUpload, 460 where isOfUpload, _ where Self.isBusy(reply.status):
            return canGoOn ? .wait : end(reply)
        default:
            return end(reply)
        }
    }

    /// The facts with which a later process continues; `nil` if the upload has ended, and before the server has told its
    /// URL.
    package var recorded: Known? { known ?? denied }

    /// Forgets the upload, so that none continues it.
    package mutating func forget() { (known, denied) = (nil, nil) }

    /// Returns the message that removes the upload from the server; `nil` if there is none, the server cannot do that, or
    /// it may have completed the upload.
    ///
    /// - Parameter evenIfComplete: Whether a complete upload is removed as well, because it has bytes of two files.
    package func cancellation(evenIfComplete: Bool = false) -> UploadMessage? {
        guard let known, known.uploadProtocol == .ietf || known.canBeCancelled, evenIfComplete || !mayBeComplete else {
            return nil
        }
        return message(.cancel)
    }

    // MARK: Responses

    private mutating func discover(_ head: ResponseHead) -> Action {
        if Self.isBusy(head.status.code) { return .wait }
        isDiscovered = true
        let isTus = head.headers.first(.tusResumable) == "1.0.0" || head.headers.tokens(.tusVersion).contains("1.0.0")
        guard isTus || uploadProtocol == .tus else {
            uploadProtocol = .ietf
            if let limits = UploadLimits(head.headers) { (self.limits, isSupported) = (limits, true) }
            return create()
        }
        uploadProtocol = .tus
        let extensions = head.headers.tokens(.tusExtension)
        limits.maximumSize = head.headers.natural(.tusMaximumSize)
        canBeCancelled = extensions.contains("termination")
        if options.verifiesParts, extensions.contains("checksum") {
            let algorithms = head.headers.tokens(.tusChecksumAlgorithm)
            digest = UploadDigest.Algorithm.allCases.first { algorithms.contains($0.rawValue) }.map { .checksum($0) }
        }
        return create()
    }

    private mutating func created(_ reply: UploadReply, _ range: Range<Int64>) -> Action {
        switch uploadProtocol {
        case .tus:
            guard let url = reply.location else { return .fail(.server("it created an upload without a URL")) }
            note(url, reply)
            return goOn()
        case .ietf, nil:
            // A server without support, whose Location is not that of an upload.
            if range.upperBound == length, reply.isComplete == nil { return end(reply) }
            guard let url = reply.location ?? known?.url, known == nil || known?.url == url else {
                return .fail(.server("it created an upload without a URL, or with two"))
            }
            if known == nil { note(url, reply) }
            guard let next = valid(reply.offset ?? range.upperBound) else {
                return .fail(Self.surplus)
            }
            acknowledge(next)
            return goOn()
        }
    }

    private mutating func located(_ reply: UploadReply) -> Action {
        guard let offset = reply.offset else { return .fail(.server("it does not tell how many bytes it has")) }
        if let other = reply.length, other != length { return createAgain() }
        guard let offset = valid(offset) else { return .fail(Self.surplus) }
        acknowledge(offset)
        if reply.isComplete == true {
            guard offset == length else { return .fail(Self.early) }
            isReplaying = true
        }
        return goOn()
    }

    private mutating func appended(_ reply: UploadReply, _ range: Range<Int64>) -> Action {
        if isReplaying { return endAsLocated() }
        let end = uploadProtocol == .ietf ? reply.offset ?? range.upperBound : reply.offset
        if uploadProtocol == .ietf, range.upperBound == length {
            // The response of the resource says that the upload is complete.
            if range.isEmpty { return .fail(.server("it does not complete the upload")) }
            if reply.isComplete == nil { return send(.locate) }
        }
        guard let end else { return send(.locate) }
        guard let offset = valid(end) else { return .fail(Self.surplus) }
        acknowledge(offset)
        return goOn()
    }

    /// Sends a smaller part after a 413.
    private mutating func shrink(_ exchange: UploadExchange, after reply: UploadReply) -> Action {
        guard let range = exchange.range, !range.isEmpty, uploadProtocol == .tus || isSupported else {
            return uploadProtocol == .tus ? .fail(.tooLarge(maximum: limits.maximumSize)) : end(reply)
        }
        let size = Int64(range.count)
        let announced = limits.maximumPart.map { $0 < size ? $0 : size } ?? size
        partLimit = announced < size ? announced : size / 2
        guard partLimit >= max(limits.minimumPart ?? 0, Self.smallestPart) || announced < size else {
            return end(reply)
        }
        return known == nil ? create() : send(.locate)
    }

    // MARK: Requests

    /// Sends the next bytes, or ends the upload.
    private mutating func goOn() -> Action {
        guard offset == length else { return sendPart(from: offset) { .append($0) } }
        // The draft requires a request that completes the upload.
        guard uploadProtocol == .tus else { return send(.append(length..<length)) }
        known = nil
        return .finish
    }

    private mutating func end(_ reply: UploadReply) -> Action {
        switch reply.status {
        // A later upload, or one with other credentials, may go on.
        case 401, 403, 407, 408, 423, 425, 429, 500...599: if reply.isComplete == true { forget() }
        default: forget()
        }
        return .finish
    }

    private mutating func endAsLocated() -> Action {
        known = nil
        return .finishAsLocated
    }

    private mutating func create() -> Action {
        if let maximum = limits.maximumSize, length > maximum { return .fail(.tooLarge(maximum: maximum)) }
        if uploadProtocol == .tus { return send(.create(0..<0)) }
        return isSupported ? sendPart(from: 0) { .create($0) } : send(.create(0..<length))
    }

    /// Creates the upload anew, because the server has it no longer, or denies it.
    private mutating func createAgain(isDenied: Bool = false) -> Action {
        guard !mayBeComplete || mayRepeatCreation else { return .fail(.outcomeUnknown) }
        restarts += 1
        let last = recorded
        forget()
        guard restarts <= Self.mostRestarts else { return .fail(.server("it has forgotten the upload repeatedly")) }
        (offset, highestOffset, mayBeComplete, isReplaying) = (0, 0, false, false)
        if isDenied { denied = last }
        isRecognized = key != nil
        if !isRecognized { sentEnd = 0 }
        return uploadProtocol == .ietf || isDiscovered ? create() : send(.discover)
    }

    private mutating func sendPart(
        from start: Int64, _ makeExchange: (Range<Int64>) -> UploadExchange
    ) -> Action {
        if start < length, limits.maximumPart == 0 { return .fail(.tooLarge(maximum: 0)) }
        let wanted = max(1, options.partSize ?? (options.verifiesParts ? Self.verifiedPart : .max))
        let size = min(max(min(wanted, partLimit), limits.minimumPart ?? 0), limits.maximumPart ?? .max)
        return send(makeExchange(start..<min(length, start.addingClamped(size))))
    }

    private mutating func send(_ next: UploadExchange) -> Action {
        turns += 1
        guard turns <= Self.mostTurns else { return .fail(.server("it makes no progress")) }
        mightBeCompleteBefore = mayBeComplete
        if let range = next.range {
            if range.upperBound == length { mayBeComplete = true }
            sentEnd = max(sentEnd, range.upperBound)
        }
        exchange = next
        return .send(message(next))
    }

    /// Returns the message of an exchange.
    private func message(_ exchange: UploadExchange) -> UploadMessage {
        var message = UploadMessage(exchange: exchange)
        let isTus = uploadProtocol == .tus
        switch uploadProtocol {
        case .tus: message.fields[.tusResumable] = "1.0.0"
        case .ietf: message.fields[.uploadInteropVersion] = "\(Self.interopVersion)"
        case nil: break
        }
        switch exchange {
        case .discover:
            message.method = .options
            // A request without the version is answered by each tus server (tus 1.0, “OPTIONS”).
            message.fields[.tusResumable] = nil
            return message
        case .create(let range):
            message.fields[.uploadLength] = "\(length)"
            if isTus {
                message.method = .post
                message.fields[.uploadMetadata] = metadata
            } else {
                message.contentFields = range == 0..<length ? .all : .ofWhole
                message.fields[.uploadComplete] = range.upperBound == length ? "?1" : "?0"
            }
        case .locate: message.method = .head
        case .append(let range):
            message.method = .patch
            message.fields[.uploadOffset] = "\(range.lowerBound)"
            message.fields[.contentType] = isTus ? "application/offset+octet-stream" : "application/partial-upload"
            if !isTus { message.fields[.uploadComplete] = range.upperBound == length ? "?1" : "?0" }
        case .cancel: message.method = .delete
        }
        if case .create = exchange {} else { message.url = known?.url }
        if options.verifiesParts, exchange.range?.isEmpty == false { message.digest = isTus ? digest : .contentDigest }
        return message
    }

    // MARK: What is known

    private mutating func note(_ url: URL, _ reply: UploadReply) {
        guard let uploadProtocol else { return }
        known = Known(
            uploadProtocol: uploadProtocol, url: url, expiry: reply.expiry, digest: digest,
            canBeCancelled: canBeCancelled, key: key, mayBeComplete: mayBeComplete)
        denied = nil
    }

    private mutating func learn(from reply: UploadReply) {
        if let limits = reply.limits {
            self.limits.update(limits)
            isSupported = true
        }
        if let expiry = reply.expiry { known?.expiry = expiry }
    }

    /// Returns an offset unless the server cannot have that many bytes.
    private func valid(_ offset: Int64) -> Int64? { offset <= sentEnd ? offset : nil }

    /// Notes the offset of the server, which may be lower than before if it has lost bytes.
    private mutating func acknowledge(_ offset: Int64) {
        if offset < length { mayBeComplete = false }
        advance(to: offset)
    }

    private mutating func advance(to offset: Int64) {
        self.offset = offset
        guard offset > highestOffset else { return }
        highestOffset = offset
        turns = 0
    }

    /// The version of the draft (draft-ietf-httpbis-resumable-upload, appendix “Draft Version Identification”).
    static let interopVersion: Int64 = 8
    /// The size of parts with a digest, which are read twice.
    private static let verifiedPart: Int64 = 8 << 20
    /// The size of parts down to which they are halved after a 413 without a limit.
    private static let smallestPart: Int64 = 64 << 10
    private static let (mostTurns, mostRestarts) = (64, 3)
    private static let surplus = SessionError.UploadFailure.server("it has more bytes than were sent")
    private static let early = SessionError.UploadFailure.server("it has ended the upload before its last byte")
}
