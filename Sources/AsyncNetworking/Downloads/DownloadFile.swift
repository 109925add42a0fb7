// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The file of a running download: its bytes, their expected digests, and the record of a durable download.
///
/// Used by a single task and not shared.
final class DownloadFile {
    let job: DownloadJob
    let request: Request
    /// The header fields of the request with those of the session.
    let fields: HTTPFields
    /// Whether the request and the session permit decoding the content.
    let decodesContent: Bool
    /// Whether the content is stored as received: a range of encoded content is not one of the file.
    let storesAsReceived: Bool
    let stopwatch: Stopwatch
    /// The final path, with symbolic links resolved; `nil` if a closure chooses it.
    let location: FileLocation?
    /// Whether the program requested a range, which the file then consists of.
    let hasOwnRange: Bool
    /// Whether a later request can ask for the rest: a GET without `Range`.
    let mayContinue: Bool
    let isDurable: Bool
    /// The digest that the program expects of the whole file, possibly that in the record of an earlier durable download;
    /// `nil` for none.
    private(set) var expectedDigest: ContentDigest?

    /// The temporary file; `nil` if the destination is a device, and after the end.
    var partial: PartialFile?
    let device: FileDescriptor?
    /// The number of bytes written to the device.
    private var deviceSize: Int64 = 0

    /// The plan for the next request and its response.
    var plan: ResumePlan
    /// The resume data for the bytes in the temporary file; `nil` if the download cannot be resumed.
    var known: ResumeData?
    /// The bytes in the temporary file that follow a gap, which segments have written; see ``SegmentPlan``.
    var parts = ByteRanges()
    var segmentUse = SegmentUse.permitted
    /// The mirrors that may be used.
    var mirrors: [URL]
    var server = Server.own
    /// The checks of pieces, if the program has their digests. Then those of the server are not verified.
    var pieces: PieceChecks?
    var pieceState = PieceState.unverified
    /// The last response that was accepted in this task; `nil` before the first one.
    private(set) var accepted: AcceptedResponse?
    /// The digests of the whole file.
    var whole = DigestChecks([])
    /// The digests of the whole file in trailers and in the responses to segments. If others are not known, the file is
    /// read once more.
    var late: Set<ContentDigest> = []
    var turns = HashingTurns()
    var followUps = FollowUpLimit()
    /// The number of bytes received, and of the longest part of the file so far.
    var (received, longest) = (Int64(0), Int64(0))
    /// The number of received bytes at the last flush, and its time.
    var flushed = (received: Int64(0), time: Duration.zero)
    /// The resume data for the bytes that are on the disk, and whether later ones were lost.
    private var flushedData: ResumeData?
    private var hasLostBytes = false
    /// The file of the record that was found beside the partial file, or written last; `nil` for none.
    var lastRecord: FileStamp?

    /// Opens the temporary file, including the bytes of an earlier download if there are any.
    ///
    /// - Throws: ``SessionError/file(_:)`` or ``SessionError/notResumable(_:)``.
    init(
        _ job: DownloadJob, for request: Request, on pipeline: Pipeline, stopwatch: Stopwatch
    ) throws(SessionError) {
        self.job = job
        self.request = request
        expectedDigest = job.expectedDigest
        mirrors = job.options.mirrors
        pieces = job.options.pieceDigests.map { PieceChecks($0, done: ByteRanges()) }
        var fields = request.headers
        fields.fill(from: pipeline.headers)
        self.fields = fields
        decodesContent = request.options(inheriting: pipeline.options).value.decodesContent
        self.stopwatch = stopwatch
        hasOwnRange = request.headers.contains(.range)
        // Further requests would send a body again, which neither a record nor resume data contains.
        let isWithoutBody =
            switch request.body.content {
            case .none: true
            case .bytes(let data): data.isEmpty
            default: false
            }
        mayContinue = request.method == .get && !hasOwnRange && isWithoutBody
        plan = ResumePlan(hasOwnRange: hasOwnRange)
        do throws(SystemError) {
            switch job.destination.target {
            case .path(let path):
                let location = FileLocation(path.absolutePath)
                if location.name.isEmpty { throw SystemError.isDirectory }
                if job.destination.createsIntermediateDirectories { try location.createDirectories() }
                if !job.destination.overwritesExisting, location.exists { throw SystemError.exists }
                self.location = location
                device = try location.openDevice()
            case .choice:
                location = nil
                device = nil
            }
        } catch {
            throw .file(job.path, error)
        }
        guard device == nil || job.options.pieceDigests == nil else {
            throw .transport(TransportError(.invalidRequest(.option("pieceDigests require a regular file"))))
        }
        if let location { try DownloadRecord.checkDestination(location.path) }
        isDurable = job.options.isDurable && mayContinue && location?.isReplaceable == true
        storesAsReceived =
            isDurable || hasOwnRange || job.options.resumeData != nil || job.options.wantsSegments && mayContinue
        guard device == nil else { return }
        try openPartialFile()
    }

    private func openPartialFile() throws(SessionError) {
        if let data = job.options.resumeData {
            guard let failure = try open(data) else { return try nameDurably() }
            guard job.options.startsOverIfNotResumable else { throw .notResumable(failure) }
        }
        do throws(SystemError) {
            guard isDurable, let location else {
                // A directory for temporary files may be open to other users.
                partial = try PartialFile(path: newPath, opening: .new, mode: location?.temporaryMode ?? 0o600)
                return
            }
            let path = DownloadRecord.partialFile(for: location.path)
            partial = try Self.openDurable(path, replacing: location)
            if let data = try DownloadRecord.read(beside: path), data.url == request.url {
                continueWith(identified(data))
            }
        } catch {
            if size > 0 { partial.take()?.keep() }
            throw .file(job.path, error)
        }
        try writeFirstRecord()
    }

    /// Opens or creates the partial file of a durable download.
    ///
    /// - Throws: `EEXIST` for a file that the program or another one has put there.
    private static func openDurable(
        _ path: String, replacing location: FileLocation
    ) throws(SystemError) -> PartialFile {
        let file = try PartialFile(path: path, opening: .either, mode: location.temporaryMode)
        guard file.size == 0 || FileLocation(DownloadRecord.path(beside: path)).exists else {
            file.keep()
            throw SystemError.exists
        }
        return file
    }

    /// Gives the partial file of an earlier download the name by which a later durable download finds it.
    ///
    /// The record is on the disk first: if the process ends before the file has its name, the record counts bytes that are
    /// missing, whereas a file without a record is that of another program.
    private func nameDurably() throws(SessionError) {
        guard isDurable, let location, let old = partial?.path else { return }
        let path = DownloadRecord.partialFile(for: location.path)
        guard partial?.isFile(at: path) == false else {
            do throws(SystemError) {
                // The earlier download may not have been durable.
                try flushBytes()
            } catch {
                keepUnlessLost()
                throw .file(path, error)
            }
            return try writeFirstRecord()
        }
        do throws(SystemError) {
            // Locked until the other file takes its place, and without bytes that the new record could count.
            var replaced = try Self.openDurable(path, replacing: location)
            try replaced.startOver()
            try replaced.flush()
            try flushBytes()
            known?.partialFile = path
            let found = lastRecord
            if let record { lastRecord = try DownloadRecord.write(record, isFirst: true) }
            try partial?.rename(to: path)
            if let found { DownloadRecord.discard(beside: old, if: found) }
            _ = consume replaced
            flushedData = currentResumeData
        } catch {
            keepUnlessLost()
            throw .file(path, error)
        }
    }

    /// Keeps the partial file for a later download, without its bytes if it is unknown which of them are lost.
    private func keepUnlessLost() {
        if hasLostBytes { try? partial?.startOver() }
        partial.take()?.keep()
    }

    /// Opens the partial file of an earlier download.
    ///
    /// - Returns: The reason why the download cannot be resumed, or `nil` if it can.
    private func open(_ data: ResumeData) throws(SessionError) -> SessionError.ResumeFailure? {
        let data = identified(data)
        do throws(SystemError) {
            let mode = location?.temporaryMode ?? 0o600
            var file = try PartialFile(path: data.partialFile, opening: .existing, mode: mode)
            let isLongEnough = file.size >= data.offset
            let isVerifiable = data.isVerifiable(with: job.options.pieceDigests) && mayContinue
            guard isLongEnough, data.completedBytes == 0 || isVerifiable && isSelected(data) else {
                if job.options.startsOverIfNotResumable {
                    DownloadRecord.discard(of: &file)
                } else {
                    file.keep()
                }
                return !isLongEnough ? .partialFile(data.partialFile) : isVerifiable ? .otherRequest : .noValidator
            }
            do throws(SystemError) {
                lastRecord = try DownloadRecord.stamp(beside: data.partialFile)
            } catch {
                file.keep()
                throw error
            }
            partial = consume file
            continueWith(data)
            return nil
        } catch {
            switch error.fileReason {
            case .missing, .isDirectory: return .partialFile(data.partialFile)
            default: throw .file(data.partialFile, error)
            }
        }
    }

    private func continueWith(_ data: ResumeData) {
        expectedDigest = expectedDigest ?? data.expectedDigest
        let isVerifiable = data.isVerifiable(with: job.options.pieceDigests)
        guard size >= data.offset, data.completedBytes == 0 || isVerifiable && isSelected(data),
            var resumed = resumeData(of: data.representation)
        else { return }
        parts = data.parts?.within(data.offset..<max(data.offset, min(size, data.totalBytes ?? 0))) ?? ByteRanges()
        resumed.offset = data.offset
        if data.hasMirrorBytes == true { resumed.hasMirrorBytes = true }
        known = resumed
        flushedData = currentResumeData
        longest = data.completedBytes
        planRest(after: data)
    }

    /// Returns resume data with a valid offset, and with the digest that this download expects. Bytes of which another one
    /// was expected are not identified by it: they need a validator.
    private func identified(_ data: ResumeData) -> ResumeData {
        var data = data
        data.offset = max(0, data.offset)
        let isOther =
            data.expectedDigest?.algorithm == expectedDigest?.algorithm && data.expectedDigest != expectedDigest
        data.expectedDigest = isOther ? nil : expectedDigest ?? data.expectedDigest
        return data
    }

    /// Whether the request selects the representation of an earlier download, or digests identify it.
    private func isSelected(_ data: ResumeData) -> Bool {
        job.options.pieceDigests != nil || data.isSelected(by: fields)
    }

    /// Whether the program has the digests of pieces, by which the bytes are verified instead of those of the server.
    var hasPieceDigests: Bool { job.options.pieceDigests != nil }

    private var newPath: String {
        switch job.destination.target {
        case .path(let path): AtomicFile.temporaryPath(for: location?.path ?? path)
        case .choice(let directory, _):
            AtomicFile.temporaryPath(for: "\(directory.absolutePath)/download")
        }
    }

    // MARK: The exchange

    /// Accepts a response that contains the whole file.
    ///
    /// - Parameter keepsParts: Whether the bytes after a gap, which belong to the same version, stay.
    func beginWhole(_ head: ResponseHead, _ body: ResponseBody, keepsParts: Bool) throws(SessionError) {
        let isChanged = isChanged(head, body)
        do throws(SystemError) {
            if keepsParts { try partial?.rewind(to: 0) } else { try partial?.startOver() }
            // Another download may have left a record, whose bytes these replace. Without it, the file would be that of
            // another program.
            if !isDurable, let record = lastRecord, let path = partial?.path {
                try partial?.rename(to: newPath)
                DownloadRecord.remove(beside: path, if: record)
                lastRecord = nil
            }
        } catch {
            throw .file(job.path, error)
        }
        if !keepsParts { parts = ByteRanges() }
        pieceState = .unverified
        var representation = Representation(head, to: fields, sensitive: job.sensitiveHeaders)
        // The size tells where the bytes after a gap may be, also if this response does not.
        if keepsParts, representation.totalBytes == nil { representation.totalBytes = known?.totalBytes }
        // The parts that are received from now on are not those of the one that was requested.
        if !keepsParts { plan.replaceRepresentation(by: representation) }
        let hasMirrorBytes = keepsParts && known?.hasMirrorBytes == true
        known = isChanged ? nil : resumeData(of: representation)
        if hasMirrorBytes { known?.hasMirrorBytes = true }
        let digests = known == nil ? head.headers.contentDigests : representation.digests
        whole = DigestChecks(isChanged || hasPieceDigests ? [] : digests, and: expectedDigest)
        late = []
        accepted = AcceptedResponse(
            url: head.url,
            range: isChanged || head.status != .partialContent ? nil : head.contentRange?.ofWholeFile,
            digests: DigestChecks([]), verifiesTrailers: !isChanged && !hasPieceDigests)
        (flushed, flushedData) = ((received, stopwatch.elapsed), nil)
        if parts.isEmpty || !isDurable { try writeRecord(isFirst: true) } else { try flush() }
    }

    /// Accepts a response that continues the existing bytes, or that reports that they are complete. If a digest is
    /// expected, they are hashed while the others arrive: the server may not wait.
    func beginPart(_ head: ResponseHead, _ range: ContentRange?) throws(SessionError) {
        let offset = plan.offset
        do throws(SystemError) {
            // Until they are overwritten, the bytes after the offset stay: the record may count them, and a stored
            // response may be a link to this file.
            try partial?.rewind(to: offset)
        } catch {
            throw .file(job.path, error)
        }
        if server != .own, accepted == nil {
            known?.representation.validator = nil
            known?.hasMirrorBytes = true
        }
        // The digests of a 416 are those of its own content.
        if let range { known?.representation.learn(from: head, total: range.total) }
        (pieceState, late) = (.unverified, [])
        let isVerified = range != nil && !hasPieceDigests
        accepted = AcceptedResponse(
            url: head.url, range: range, digests: DigestChecks(isVerified ? head.headers.contentDigests : []),
            verifiesTrailers: isVerified)
        flushed = (received, stopwatch.elapsed)
        let digests = DigestChecks(hasPieceDigests ? [] : known?.representation.digests ?? [], and: expectedDigest)
        if whole.size > offset || whole.expected != digests.expected { whole = digests }
    }

    /// Writes and hashes a chunk of the body; flushes a durable download when due. Returns `false` if the chunk exceeds
    /// the range of the response; then nothing is written.
    func write(_ chunk: Data) throws(SessionError) -> Bool {
        if let last = accepted?.range?.bytes?.upperBound, size + Int64(chunk.count) - 1 > last { return false }
        if let pieces = job.options.pieceDigests, size + Int64(chunk.count) > pieces.totalBytes {
            try checkSize(size + Int64(chunk.count))
        }
        received += Int64(chunk.count)
        let offset = size
        do throws(SystemError) {
            try device?.writeAll(chunk.bytes)
            try partial?.write(chunk.bytes)
            if device != nil { deviceSize += Int64(chunk.count) }
            try hash(chunk, at: offset)
        } catch {
            throw .file(job.path, error)
        }
        accepted?.digests.update(chunk.bytes)
        pieces?.receive(offset..<size, from: 0)
        if !parts.isEmpty { parts = parts.within(size..<Int64.max) }
        try flushIfDue()
        return true
    }

    /// The number of bytes in the file.
    var size: Int64 { device == nil ? partial?.size ?? 0 : deviceSize }

    /// Verifies the end of a body, and returns the next request; `nil` if the file is complete.
    ///
    /// A server may send less than the requested range (RFC 9110 §15.3.7). If the size of the whole is unknown, only a
    /// response with status 416 shows the end.
    func endBody(
        _ trailers: HTTPFields, waitUntilRunning: () async throws -> Void
    ) async throws -> FurtherRequest? {
        try accepted?.digests.verify(job.path, from: request.url)
        let range = accepted?.range
        if accepted?.verifiesTrailers == true {
            if mayContinue { late.formUnion(trailers.representationDigests) }
            try await verify(trailers.contentDigests, from: range?.bytes?.lowerBound ?? 0, waitUntilRunning)
        }
        guard let range, let bytes = range.bytes else { return nil }
        guard bytes.contains(size - 1) else { return try startOver(afterWrongRange: nil) }
        if size > bytes.upperBound, size >= range.total ?? known?.totalBytes ?? .max { return nil }
        guard let data = currentResumeData else { return try startOver(afterWrongRange: nil) }
        planRest(after: data)
        longest = max(longest, size)
        return try followUp()
    }

    // MARK: The end

    /// Whether the temporary file may have been created for its owner only.
    private var mayBePrivate: Bool { location == nil || job.options.resumeData != nil }

    /// The path of the temporary file; `nil` if there is none, and if other users can modify the final file, whose
    /// permissions it gets at the end, or if these are not known yet.
    var linkablePath: String? {
        mayBePrivate || location?.isWritableByOthers == true ? nil : partial?.path
    }

    /// Moves the complete file to its final path, and returns it.
    func commit(
        _ response: Response<Void>, waitUntilRunning: () async throws -> Void
    ) async throws -> DownloadedFile {
        try await verifyPieces(waitUntilRunning: waitUntilRunning)
        try whole.verify(job.path, from: request.url)
        try await verify(Array(late.subtracting(whole.expected)), from: 0, waitUntilRunning)
        let size = size
        do throws(SystemError) {
            // Truncating stores the bytes as well, but drops the error.
            try partial?.checkStored()
            try partial?.truncate(to: size)
        } catch {
            hasLostBytes = true
            throw SessionError.file(job.path, error)
        }
        var file = DownloadedFile(path: partial?.path ?? "", size: size, response: response)
        switch job.destination.target {
        case .path(let path): file.path = path
        case .choice(_, let choose): file.path = try await choose(file)
        }
        guard device == nil else { return file }
        let location = location ?? FileLocation(file.path.absolutePath)
        // A closure may leave the file where it is.
        if partial?.isFile(at: location.path) != true { try DownloadRecord.checkDestination(location.path) }
        do throws(SystemError) {
            guard location.isReplaceable || location.isDirectory else { throw SystemError.exists }
            if job.destination.createsIntermediateDirectories { try location.createDirectories() }
            if isDurable { try flushBytes() }
            let partialPath = partial?.path
            try partial?.move(
                to: location.path, overwriting: job.destination.overwritesExisting,
                mayBePrivate && file.path != partialPath ? .ofReplacedOrNew : .ofReplaced)
            // If it was copied, it is removed here, before its record: without one, it would be that of another program.
            partial = nil
            if let partialPath, let lastRecord { DownloadRecord.remove(beside: partialPath, if: lastRecord) }
        } catch {
            throw SessionError.file(file.path, error)
        }
        return file
    }

    /// Ends a failed download: keeps the temporary file and returns resume data if the download can be resumed, and
    /// removes the file otherwise.
    ///
    /// - Parameter isWanted: Whether the program wants to resume the download.
    func end(after error: any Error, isWanted: Bool) -> ResumeData? {
        defer {
            if var file = partial.take() { DownloadRecord.discard(of: &file) }
        }
        if case .digest = error as? SessionError, pieceState != .wrong { return nil }
        guard isDurable || isWanted else { return nil }
        // After a failure the system reports success although bytes are lost.
        if isDurable, !hasLostBytes { try? flush() }
        let data = hasLostBytes ? flushedData : currentResumeData
        if isDurable || data != nil { partial.take()?.keep() }
        return data.map(forServer)
    }

    // MARK: States

    /// Whether the file may be received in segments.
    enum SegmentUse {
        case permitted
        /// It may, and has started over because a segment had changed, which it does once.
        case permittedAfterChange
        /// It may not, because no server has sent further segments.
        case refused
    }

    /// The server of the download.
    enum Server {
        /// That of the request's URL.
        case own
        /// A mirror, which has taken its place.
        case mirror
        /// The same, and the bytes of other mirrors were requested again, because the digest of the whole was wrong.
        case onlyMirror
    }

    /// The state of the pieces that the program knows the digests of.
    enum PieceState {
        case unverified
        case verified
        /// A piece is wrong, and the file no longer counts its bytes.
        case wrong
    }

    /// An accepted response.
    struct AcceptedResponse {
        /// The URL, after redirects.
        let url: URL
        /// The range of the file that the response has; `nil` if it does not say that.
        let range: ContentRange?
        /// The digests of the bytes of the file in the response.
        fileprivate(set) var digests: DigestChecks
        /// Whether the trailers may contain digests of these bytes.
        let verifiesTrailers: Bool
    }
}

// The requests of a download.

extension DownloadFile {
    /// The next request, which asks for the missing bytes in a form that a later request can continue.
    func next(hasProgress: Bool) -> FurtherRequest {
        let isIdentity = storesAsReceived || plan.offset > 0
        let hasOwnCodings = request.headers.contains(.acceptEncoding)
        let codings = isIdentity ? "identity" : self.fields.first(.acceptEncoding)
        let decodesContent = decodesContent && !isIdentity
        let (ownRange, fields) = (hasOwnRange, plan.fields)
        return FurtherRequest(hasProgress: hasProgress) { request in
            if !ownRange { request.headers[.range] = fields[.range] }
            if !ownRange { request.headers[.ifRange] = fields[.ifRange] }
            request.changeOptions { $0.decodesContent = decodesContent }
            if !hasOwnCodings { request.headers[.acceptEncoding] = codings }
        }
    }

    /// Changes the first request of the download.
    func prepare(_ request: inout Request) {
        guard storesAsReceived || plan.offset > 0 else { return }
        next(hasProgress: false).prepare(&request)
    }

    /// Returns the request for the bytes that are missing after a response has failed, which are all if none has arrived;
    /// `nil` if the download cannot be continued.
    func rest() -> FurtherRequest? {
        guard let data = currentResumeData else {
            guard size == 0, parts.isEmpty else { return nil }
            plan = ResumePlan(hasOwnRange: hasOwnRange)
            return next(hasProgress: false)
        }
        planRest(after: data)
        defer { longest = max(longest, data.completedBytes) }
        return next(hasProgress: data.completedBytes > longest)
    }

    /// Whether a mirror may take the place of a server whose response is rejected.
    var hasFurtherMirror: Bool { accepted == nil && !mirrors.isEmpty }

    /// Returns the request to a mirror after a server has failed before its response was accepted; `nil` if there is none,
    /// or the server is not to blame.
    func requestToNextMirror(after error: any Error, of request: Request, on pipeline: Pipeline) -> Request? {
        guard hasFurtherMirror, let mirror = mirrors.first else { return nil }
        switch error {
        case is TransportError, is SerializationError: break
        case SessionError.transport, SessionError.serialization, SessionError.redirect, SessionError.authentication,
            SessionError.notResumable, SessionError.size, SessionError.circuitOpen:
            break
        default: return nil
        }
        mirrors.removeFirst()
        server = .mirror
        // Another server has validators of its own. Those of the bytes are known until it has answered.
        if var data = known {
            data.representation.validator = nil
            planRest(after: data)
        }
        var request = pipeline.request(request, at: mirror)
        next(hasProgress: false).prepare(&request)
        return request
    }

    /// Returns a request for the whole file.
    ///
    /// - Parameter failure: Why the bytes cannot be continued.
    /// - Throws: ``SessionError/notResumable(_:)`` if the program does not permit starting over, or there were too many
    ///   requests.
    func startOver(because failure: SessionError.ResumeFailure) throws(SessionError) -> FurtherRequest {
        guard job.options.startsOverIfNotResumable else { throw .notResumable(failure) }
        plan.startOver(hasParts: !parts.isEmpty)
        return try followUp()
    }

    /// Returns a request for the whole file if bytes that a response continues are missing because another program has
    /// truncated the file since; otherwise `nil`.
    ///
    /// - Throws: As ``startOver(because:)`` does.
    func startOverIfTruncated() throws(SessionError) -> FurtherRequest? {
        let end = max(plan.offset, parts.ranges.last?.upperBound ?? 0)
        guard let path = partialPath, let stored = try? partial?.storedSize(), stored < end else { return nil }
        parts = ByteRanges()
        return try startOver(because: .partialFile(path))
    }

    /// Returns a request for the whole file after a response with other bytes than its range has.
    ///
    /// - Throws: ``SessionError/notResumable(_:)`` if the whole was requested already, or as
    ///   ``startOver(because:)`` does.
    func startOver(afterWrongRange range: String?) throws(SessionError) -> FurtherRequest {
        guard plan.offset > 0 else {
            known = nil
            throw .notResumable(.wrongRange(range))
        }
        do throws(SystemError) {
            // What this response has sent does not count, also if the next request fails.
            try partial?.rewind(to: plan.offset)
        } catch {
            throw .file(job.path, error)
        }
        parts = ByteRanges()
        if var data = flushedData {
            (data.offset, data.parts) = (min(data.offset, plan.offset), nil)
            flushedData = data
        }
        if isDurable { try flush() }
        return try startOver(because: .wrongRange(range))
    }

    func followUp() throws(SessionError) -> FurtherRequest {
        guard followUps.permitsNext(after: received) else { throw .notResumable(.tooManyParts) }
        return next(hasProgress: true)
    }

    /// Whether the response's bytes differ from those sent, because they are decoded or an interceptor has replaced
    /// them.
    func isChanged(_ head: ResponseHead, _ body: ResponseBody) -> Bool {
        body.isReplaced || !storesAsReceived && decodesContent && head.isDecodable
    }

    func planRest(after data: ResumeData) {
        plan = ResumePlan(
            offset: data.offset, of: data.representation, startsOver: job.options.startsOverIfNotResumable,
            isIdentity: storesAsReceived, hasParts: !parts.isEmpty,
            digests: hasPieceDigests ? .pieces : expectedDigest == nil ? .none : .whole)
    }
}

// The resume data of a download, and its record on disk.

extension DownloadFile {
    /// The resume data for the bytes written so far; `nil` if the download cannot be resumed.
    var currentResumeData: ResumeData? {
        guard var data = known, data.isVerifiable(with: job.options.pieceDigests), let path = partialPath else {
            return nil
        }
        data.partialFile = path
        data.offset = accepted == nil ? min(data.offset, size) : size
        data.parts = parts.isEmpty ? nil : parts
        return data.completedBytes > 0 ? data : nil
    }

    /// Resume data for this download without bytes; `nil` if a later request cannot ask for the rest.
    func resumeData(of representation: Representation) -> ResumeData? {
        guard mayContinue, let path = partialPath else { return nil }
        var headers = request.headers
        headers.removeAll { job.sensitiveHeaders.contains($0.name) }
        return ResumeData(
            url: request.url, headers: headers, representation: representation, offset: 0, partialFile: path,
            destination: location?.path, overwritesExisting: job.destination.overwritesExisting,
            expectedDigest: expectedDigest, hasMirrorBytes: server == .own ? nil : true)
    }

    /// Flushes the written bytes to the disk, then updates the record.
    func flush() throws(SessionError) {
        do throws(SystemError) {
            try flushBytes()
        } catch {
            throw .file(job.path, error)
        }
        try writeRecord()
        (flushed, flushedData) = ((received, stopwatch.elapsed), currentResumeData)
    }

    /// Flushes the partial file. If that fails, only the bytes that were flushed before count.
    func flushBytes() throws(SystemError) {
        do throws(SystemError) {
            try partial?.flush()
        } catch {
            hasLostBytes = true
            throw error
        }
    }

    /// Flushes a durable download if enough bytes have arrived, or enough time has passed, since it was flushed last.
    func flushIfDue() throws(SessionError) {
        guard isDurable else { return }
        let isDue =
            received - flushed.received >= job.options.flushInterval
            || stopwatch.elapsed - flushed.time >= .seconds(1)
        if isDue { try flush() }
    }

    /// Writes the record; if that fails, the bytes of an earlier download are kept.
    func writeFirstRecord() throws(SessionError) {
        do throws(SessionError) {
            try writeRecord(isFirst: true)
        } catch {
            if size > 0 { partial.take()?.keep() }
            throw error
        }
    }

    /// - Parameter isFirst: Whether the bytes that follow are not those that an earlier record counts.
    func writeRecord(isFirst: Bool = false) throws(SessionError) {
        guard let record else { return }
        do throws(SystemError) {
            lastRecord = try DownloadRecord.write(record, isFirst: isFirst)
        } catch {
            throw .file(DownloadRecord.path(beside: record.partialFile), error)
        }
    }

    /// The record of the bytes written so far; `nil` for a download that is not durable.
    private var record: ResumeData? {
        guard isDurable, var data = known ?? resumeData(of: Representation()) else { return nil }
        // The bytes of a replaced body do not count.
        if accepted != nil, known != nil { data.offset = size }
        data.parts = parts.isEmpty ? nil : parts
        if !data.isVerifiable(with: job.options.pieceDigests) { (data.offset, data.parts) = (0, nil) }
        return forServer(data)
    }

    /// Returns resume data for a later download, whose server has validators of its own if a mirror has taken its place.
    private func forServer(_ data: ResumeData) -> ResumeData {
        var data = data
        if server != .own, accepted != nil { data.representation.validator = nil }
        return data
    }

    var partialPath: String? { partial?.path }
}

// Digests of bytes that were written before the digest was known.

extension DownloadFile {
    /// Verifies digests that were not known when the bytes arrived. Those written to a device cannot be read again.
    func verify(
        _ digests: [ContentDigest], from start: Int64, _ waitUntilRunning: () async throws -> Void
    ) async throws {
        guard !digests.isEmpty, device == nil else { return }
        var checks = DigestChecks(digests)
        do {
            try await hash(from: start, waitUntilRunning) { checks.update($0) }
        } catch let error as SystemError {
            throw SessionError.file(job.path, error)
        }
        try checks.verify(job.path, from: request.url)
    }

    /// Passes the bytes of the temporary file after an offset to a function.
    func hash(
        from start: Int64, _ waitUntilRunning: () async throws -> Void, _ update: (borrowing RawSpan) -> Void
    ) async throws {
        var bytes = Data(count: 256 << 10)
        var offset = start
        while offset < size {
            var span = bytes.mutableBytes
            let count = try partial?.read(into: &span, at: offset) ?? 0
            update(bytes.bytes.extracting(first: count))
            offset += Int64(count)
            await turns.pass(count)
            try await waitUntilRunning()
        }
    }
}
