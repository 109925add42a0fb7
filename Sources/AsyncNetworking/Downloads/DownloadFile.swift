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
    /// Whether the request and the session permit decoding the content.
    private let decodesContent: Bool
    let stopwatch: Stopwatch
    /// The final path, with symbolic links resolved; `nil` if a closure chooses it.
    let location: FileLocation?
    /// Whether the program requested a range, which the file then consists of.
    private let hasOwnRange: Bool
    /// Whether a later request can ask for the rest: a GET without `Range`.
    let mayContinue: Bool
    let isDurable: Bool

    /// The temporary file; `nil` if the destination is a device, and after the end.
    var partial: PartialFile?
    private let device: FileDescriptor?
    /// The number of bytes written to the device.
    private var deviceSize: Int64 = 0

    /// The plan for the next request and its response.
    private(set) var plan: ResumePlan
    /// The resume data for the bytes in the temporary file; `nil` if the download cannot be resumed.
    var known: ResumeData?
    /// Whether a response has been accepted in this task.
    var hasBegun = false
    /// The digests of the whole file, and of the part in this response.
    private var whole = DigestChecks([])
    private var part = DigestChecks([])
    /// The URL of the last accepted response, after redirects.
    private(set) var source: URL?
    /// The range of this response; `nil` if it contains the whole file.
    private var range: ContentRange?
    var flushed = (size: Int64(0), time: Duration.zero)

    /// Opens the temporary file, including the bytes of an earlier download if there are any.
    ///
    /// - Throws: ``SessionError/file(_:)`` or ``SessionError/notResumable(_:)``.
    init(
        _ job: DownloadJob, for request: Request, session: Request, stopwatch: Stopwatch
    ) throws(SessionError) {
        self.job = job
        self.request = request
        decodesContent = request.decodesContent(inheritingFrom: session)
        self.stopwatch = stopwatch
        hasOwnRange = request.headers.contains(.range)
        mayContinue = request.method == .get && !hasOwnRange
        plan = ResumePlan(hasOwnRange: hasOwnRange)
        do throws(SystemError) {
            switch job.destination.target {
            case .path(let path):
                let location = FileLocation(ProcessDirectories.absolute(path))
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
        isDurable = job.options.isDurable && mayContinue && location?.isReplaceable == true
        guard device == nil else { return }
        try openPartialFile()
    }

    private func openPartialFile() throws(SessionError) {
        if let data = job.options.resumeData {
            guard let failure = try open(data) else { return try writeFirstRecord() }
            guard job.options.startsOverIfNotResumable else { throw .notResumable(failure) }
        }
        do throws(SystemError) {
            guard isDurable, let location else {
                partial = try PartialFile(path: newPath, opening: .new)
                return
            }
            let path = DownloadRecord.partialFile(for: location.path)
            partial = try PartialFile(path: path, opening: .either)
            if let data = DownloadRecord.read(beside: path), data.url == request.url { continueWith(data) }
        } catch {
            throw .file(job.path, error)
        }
        try writeFirstRecord()
    }

    /// Opens the partial file of an earlier download.
    ///
    /// - Returns: The reason why the download cannot be resumed, or `nil` if it can.
    private func open(_ data: ResumeData) throws(SessionError) -> SessionError.ResumeFailure? {
        do throws(SystemError) {
            let file = try PartialFile(path: data.partialFile, opening: .existing)
            let isLongEnough = file.size >= data.offset
            guard isLongEnough, data.offset == 0 || data.isVerifiable && mayContinue else {
                if !job.options.startsOverIfNotResumable { file.keep() }
                return isLongEnough ? .noValidator : .partialFile(data.partialFile)
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
        guard size >= data.offset, data.offset == 0 || data.isVerifiable else { return }
        known = data
        known?.expectedDigest = job.options.expectedDigest ?? data.expectedDigest
        known?.url = request.url
        plan = ResumePlan(
            offset: data.offset, validator: data.validator, total: data.totalBytes,
            startsOver: job.options.startsOverIfNotResumable)
    }

    private var newPath: String {
        switch job.destination.target {
        case .path(let path): AtomicFile.temporaryPath(for: location?.path ?? path)
        case .choice(let directory, _):
            AtomicFile.temporaryPath(for: "\(ProcessDirectories.absolute(directory))/download")
        }
    }

    // MARK: The exchange

    /// Changes a request to ask for the missing bytes, in a form that a later request can continue.
    func prepare(_ request: inout Request) {
        request.ask(for: plan, asIdentity: asksForIdentity)
    }

    /// Makes the next response continue the bytes written so far, after its predecessor has failed.
    ///
    /// - Returns: The error for the step that retries; `nil` if the download cannot be continued.
    func interruption(by error: TransportError) -> InterruptedResponse? {
        guard let data = currentResumeData else { return nil }
        plan = ResumePlan(
            offset: data.offset, validator: data.validator, total: data.totalBytes,
            startsOver: job.options.startsOverIfNotResumable)
        return InterruptedResponse(error: error) { [plan] in $0.ask(for: plan, asIdentity: true) }
    }

    /// Whether the content must not be encoded, because a range of it is not one of the file.
    private var asksForIdentity: Bool { isDurable || hasOwnRange || plan.offset > 0 }

    /// Whether the response's body is decoded, so that its bytes differ from those sent.
    private func isDecoded(_ head: ResponseHead) -> Bool {
        !asksForIdentity && decodesContent && head.hasContentCoding
    }

    /// Makes the next request ask for the whole file.
    func startOver() {
        plan = ResumePlan(hasOwnRange: hasOwnRange)
    }

    /// Accepts a response that contains the whole file.
    func beginWhole(_ head: ResponseHead) throws(SessionError) {
        do throws(SystemError) {
            try partial?.truncate(to: 0)
        } catch {
            throw .file(job.path, error)
        }
        source = head.url
        let isDecoded = isDecoded(head)
        let expected = job.options.expectedDigest ?? known?.expectedDigest
        known = isDecoded ? nil : resumeData(of: head, expected)
        let announced = known?.announcedDigests ?? []
        whole = DigestChecks(announced + (isDecoded ? [] : head.contentDigests), and: expected)
        part = DigestChecks([])
        range = nil
        hasBegun = true
        flushed = (0, stopwatch.elapsed)
        try writeRecord()
    }

    /// Accepts a response that continues the existing bytes, or that reports that they are complete. The existing bytes
    /// are hashed again if a digest is expected.
    func beginPart(_ head: ResponseHead, _ range: ContentRange?, waitUntilRunning: () async throws -> Void) async throws
    {
        let offset = plan.offset
        do {
            // Until they are overwritten, the bytes after the offset stay: the record may count them, and a stored
            // response may be a link to this file.
            try partial?.rewind(to: offset)
            if let total = range?.total { known?.totalBytes = total }
            let announced = Set((known?.announcedDigests ?? []) + head.representationDigests)
            known?.announcedDigests = announced.sorted { $0.description < $1.description }
            (self.range, source) = (range, head.url)
            hasBegun = true
            flushed = (offset, stopwatch.elapsed)
            part = DigestChecks(head.contentDigests)
            let digests = DigestChecks(known?.announcedDigests ?? [], and: known?.expectedDigest)
            guard whole.size != offset || whole.expected != digests.expected else { return }
            whole = digests
            if !whole.expected.isEmpty { try await hashPartialFile(waitUntilRunning: waitUntilRunning) }
        } catch let error as SystemError {
            throw SessionError.file(job.path, error)
        }
    }

    private func hashPartialFile(waitUntilRunning: () async throws -> Void) async throws {
        var bytes = Data(count: 256 << 10)
        var offset: Int64 = 0
        while offset < size {
            var span = bytes.mutableBytes
            let count = try partial?.read(into: &span, at: offset) ?? 0
            whole.update(bytes.bytes.extracting(first: count))
            offset += Int64(count)
            try await waitUntilRunning()
        }
    }

    /// Writes and hashes a chunk of the body; flushes a durable download when due.
    func write(_ chunk: Data) throws(SessionError) {
        do throws(SystemError) {
            try device?.writeAllToDevice(chunk.bytes)
            try partial?.write(chunk.bytes)
            if device != nil { deviceSize += Int64(chunk.count) }
        } catch {
            throw .file(job.path, error)
        }
        whole.update(chunk.bytes)
        part.update(chunk.bytes)
        guard isDurable else { return }
        let isDue = size - flushed.size >= job.options.flushInterval || stopwatch.elapsed - flushed.time >= .seconds(1)
        if isDue { try flush() }
    }

    /// The number of bytes in the file.
    var size: Int64 { device == nil ? partial?.size ?? 0 : deviceSize }

    /// Verifies the end of a body, and returns whether the file is complete.
    ///
    /// A server may send less than the requested range; the next request then asks for the rest.
    func endBody() throws(SessionError) -> Bool {
        try part.verify(job.path, from: request.url)
        if let range, let bytes = range.bytes {
            guard bytes.contains(size - 1) else {
                // It is unknown which of the bytes are correct.
                known = nil
                throw .notResumable(.wrongRange(nil))
            }
            let total = range.total ?? known?.totalBytes
            if size <= bytes.upperBound || size < total ?? 0 {
                plan = ResumePlan(
                    offset: size, validator: known?.validator, total: total,
                    startsOver: job.options.startsOverIfNotResumable)
                return false
            }
        }
        return true
    }

    // MARK: The end

    /// Moves the complete file to its final path, and returns it.
    func commit(_ response: Response<Void>) async throws -> DownloadedFile {
        try whole.verify(job.path, from: request.url)
        let size = size
        do throws(SystemError) {
            try partial?.truncate(to: size)
        } catch {
            throw SessionError.file(job.path, error)
        }
        var file = DownloadedFile(path: partial?.path ?? "", size: size, response: response)
        switch job.destination.target {
        case .path(let path): file.path = path
        case .choice(_, let choose): file.path = try await choose(file)
        }
        guard device == nil else { return file }
        do throws(SystemError) {
            let location = location ?? FileLocation(ProcessDirectories.absolute(file.path))
            guard location.isReplaceable || location.isDirectory else { throw SystemError.exists }
            if job.destination.createsIntermediateDirectories { try location.createDirectories() }
            if isDurable { try partial?.flush() }
            let partialPath = partial?.path
            try partial?.move(to: location.path, overwriting: job.destination.overwritesExisting)
            partial = nil
            if let partialPath { DownloadRecord.remove(beside: partialPath) }
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
        defer { partial = nil }
        let path = partial?.path
        if case .digest = error as? SessionError {
            if let path, isDurable { DownloadRecord.remove(beside: path) }
            return nil
        }
        if isDurable { try? flush() }
        let data = currentResumeData
        if isDurable || isWanted && data != nil { partial.take()?.keep() }
        return isDurable || isWanted ? data : nil
    }
}

extension Request {
    /// Changes a request to ask for the range of a plan.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - isIdentity: Whether the content must not be encoded, because a range of it is not one of the file.
    fileprivate mutating func ask(for plan: ResumePlan, asIdentity isIdentity: Bool) {
        for field in plan.fields { headers[field.name] = field.value }
        guard isIdentity else { return }
        changeOptions { $0.decodesContent = false }
        if headers[.acceptEncoding] == nil { headers[.acceptEncoding] = "identity" }
    }
}
