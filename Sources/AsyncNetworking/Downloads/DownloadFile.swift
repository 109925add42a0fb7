// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The file of one download while it is written: its bytes, what they must be, and the record of a durable one.
///
/// It belongs to the work of one task, and is used by nobody else.
final class DownloadFile {
    let job: DownloadJob
    let request: Request
    /// The session's options, for a request without any.
    private let session: TransferOptions
    let stopwatch: Stopwatch
    /// The final path, with links resolved; nil where a function chooses it.
    let place: FilePlace?
    /// Whether the method and the fields are such that a later request can ask for the rest.
    let mayContinue: Bool
    let isDurable: Bool

    /// Where the bytes are; nil when they go to a device, and in the end.
    var partial: PartialFile?
    private let device: FileDescriptor?
    /// The bytes that a device was given.
    private var deviceSize: Int64 = 0

    /// How the next request asks, and what its answer means.
    private(set) var plan = ResumePlan()
    /// What is known of the bytes, and how many of them count; nil where nobody can go on with them.
    var known: ResumeData?
    /// Whether a response has told of the bytes that there are.
    var hasBegun = false
    /// What the whole must be, and what this response's part of it.
    private var whole = DigestChecks([])
    private var part = DigestChecks([])
    /// Where the range of this response ends; nil where its body has no range.
    private var range: ContentRange?
    var flushed = (size: Int64(0), time: Duration.zero)

    /// Opens the file, with what there is to go on with.
    ///
    /// - Throws: ``SessionError/file(_:)`` or ``SessionError/notResumable(_:)``.
    init(
        _ job: DownloadJob, for request: Request, session: TransferOptions, stopwatch: Stopwatch
    ) throws(SessionError) {
        self.job = job
        self.request = request
        self.session = session
        self.stopwatch = stopwatch
        mayContinue = request.method == .get && request.headers[.range] == nil
        do throws(SystemError) {
            switch job.destination.target {
            case .path(let path):
                let place = FilePlace(ProcessFolders.absolute(path))
                if job.destination.makesFolders { try place.makeFolders() }
                if !job.destination.isReplacing, place.exists { throw SystemError.exists }
                self.place = place
                device = try place.openDevice()
            case .choice:
                place = nil
                device = nil
            }
        } catch {
            throw .file(job.path, error)
        }
        isDurable = job.options.isDurable && mayContinue && place?.isReplaceable == true
        guard device == nil else { return }
        try openPartialFile()
    }

    private func openPartialFile() throws(SessionError) {
        if let data = job.options.resumeData {
            guard let problem = try open(data) else {
                return try writeRecord()
            }
            guard job.options.whenNotResumable == .startOver else { throw .notResumable(problem) }
        }
        do throws(SystemError) {
            guard isDurable, let place else {
                partial = try PartialFile(path: newPath, opening: .new)
                return
            }
            let path = DownloadRecord.partialFile(for: place.path)
            partial = try PartialFile(path: path, opening: .either)
            if let data = DownloadRecord.read(beside: path), data.url == request.url { continueWith(data) }
        } catch {
            throw .file(job.path, error)
        }
        try writeRecord()
    }

    /// Opens the bytes of an earlier download; returns why they cannot be continued, if so.
    private func open(_ data: ResumeData) throws(SessionError) -> SessionError.ResumeProblem? {
        do throws(SystemError) {
            let file = try PartialFile(path: data.partialFile, opening: .existing)
            let isLongEnough = file.size >= data.offset
            guard isLongEnough, data.offset == 0 || data.isVerifiable && mayContinue else {
                if job.options.whenNotResumable == .fail { file.keep() }
                return isLongEnough ? .noValidator : .partialFile(data.partialFile)
            }
            partial = consume file
            continueWith(data)
            return nil
        } catch {
            switch error.fileReason {
            case .missing, .isFolder: return .partialFile(data.partialFile)
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
            startsOver: job.options.whenNotResumable == .startOver)
    }

    private var newPath: String {
        let name = String(UInt64.random(in: .min ... .max), radix: 36)
        return switch job.destination.target {
        case .path(let path): "\(place?.path ?? path).\(name).part"
        case .choice(let folder, _): "\(ProcessFolders.absolute(folder))/download.\(name).part"
        }
    }

    // MARK: The exchange

    /// Makes a request ask for what is missing, in a form that a later one can ask for the rest of.
    func prepare(_ request: inout Request) {
        for field in plan.fields { request.headers[field.name] = field.value }
        guard asksForIdentity else { return }
        // A range of what was compressed is none of the file.
        request.options = (request.options ?? session).with { $0.decodesContent = false }
        if request.headers[.acceptEncoding] == nil { request.headers[.acceptEncoding] = "identity" }
    }

    private var asksForIdentity: Bool { isDurable || plan.offset > 0 }

    /// Whether the bytes of a response are not those that were sent.
    private func isDecoded(_ head: ResponseHead) -> Bool {
        guard !asksForIdentity, (request.options ?? session).decodesContent else { return false }
        return head.headers.first(.contentEncoding) ?? "identity" != "identity"
    }

    /// The next request asks for all.
    func startOver() {
        plan = ResumePlan()
    }

    /// The bytes of a response are the whole.
    func beginWhole(_ head: ResponseHead) throws(SessionError) {
        do throws(SystemError) {
            try partial?.cut(to: 0)
        } catch {
            throw .file(job.path, error)
        }
        let isDecoded = isDecoded(head)
        let expected = job.options.expectedDigest ?? known?.expectedDigest
        known = isDecoded ? nil : knowledge(of: head, expected)
        let announced = known?.announcedDigests ?? []
        whole = DigestChecks(announced + (isDecoded ? [] : head.contentDigests), and: expected)
        part = DigestChecks([])
        range = nil
        hasBegun = true
        flushed = (0, stopwatch.elapsed)
        try writeRecord()
    }

    /// The bytes of a response come after those that are there, or there are none to come. What is there is hashed again, as
    /// far as somebody knows what it must be.
    func beginPart(_ head: ResponseHead, _ range: ContentRange?, pass: () async throws -> Void) async throws {
        let offset = plan.offset
        do {
            try partial?.cut(to: offset)
            known?.totalBytes = range?.total ?? known?.totalBytes
            let announced = Set((known?.announcedDigests ?? []) + head.representationDigests)
            known?.announcedDigests = announced.sorted { $0.description < $1.description }
            self.range = range
            hasBegun = true
            flushed = (offset, stopwatch.elapsed)
            part = DigestChecks(head.contentDigests)
            let digests = DigestChecks(known?.announcedDigests ?? [], and: known?.expectedDigest)
            guard whole.size != offset || whole.expected != digests.expected else { return }
            whole = digests
            if !whole.expected.isEmpty { try await hashPartialFile(pass: pass) }
        } catch let error as SystemError {
            throw SessionError.file(job.path, error)
        }
    }

    private func hashPartialFile(pass: () async throws -> Void) async throws {
        var bytes = Data(count: 256 << 10)
        var offset: Int64 = 0
        while offset < size {
            var span = bytes.mutableBytes
            let count = try partial?.read(into: &span, at: offset) ?? 0
            whole.update(bytes.bytes.extracting(first: count))
            offset += Int64(count)
            try await pass()
        }
    }

    /// Writes bytes of the response.
    func write(_ chunk: Data) throws(SessionError) {
        do throws(SystemError) {
            try device?.writeAll(chunk.bytes)
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

    /// The bytes that are there.
    var size: Int64 { device == nil ? partial?.size ?? 0 : deviceSize }

    /// The body is over: verifies it, and says whether the file is complete.
    ///
    /// A server may send less than the range that was asked for: then the next request asks for the rest.
    func endBody() throws(SessionError) -> Bool {
        try part.verify()
        if let range, let bytes = range.bytes {
            guard bytes.contains(size - 1) else {
                // Nobody knows which of the bytes are right.
                known = nil
                throw .notResumable(.wrongRange(nil))
            }
            if size <= bytes.upperBound || size < range.total ?? 0 {
                plan = ResumePlan(
                    offset: size, validator: known?.validator, total: range.total,
                    startsOver: job.options.whenNotResumable == .startOver)
                return false
            }
        }
        return true
    }

    // MARK: The end

    /// Moves the complete file to its final name, and returns that.
    func commit(_ head: ResponseHead) async throws -> DownloadedFile {
        try whole.verify()
        let path: String
        switch job.destination.target {
        case .path(let given):
            path = given
        case .choice(_, let choose):
            path = try await choose(DownloadedFile(path: partial?.path ?? "", size: size), head)
        }
        let size = size
        guard device == nil else { return DownloadedFile(path: path, size: size) }
        do throws(SystemError) {
            let place = place ?? FilePlace(ProcessFolders.absolute(path))
            if job.destination.makesFolders { try place.makeFolders() }
            if isDurable { try partial?.flush() }
            let partialPath = partial?.path
            try partial?.move(to: place.path, replacing: job.destination.isReplacing)
            partial = nil
            if let partialPath { DownloadRecord.remove(beside: partialPath) }
        } catch {
            throw SessionError.file(path, error)
        }
        return DownloadedFile(path: path, size: size)
    }

    /// The download has failed: keeps what somebody can go on with, and returns what that takes.
    ///
    /// - Parameter isWanted: Whether what the task was doing is to be continued, as far as that is possible.
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
