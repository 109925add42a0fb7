// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

// The resume data of a download, and its record on disk.

extension DownloadFile {
    /// The resume data for the bytes written so far; `nil` if the download cannot be resumed.
    var currentResumeData: ResumeData? {
        guard var data = known, data.isVerifiable, let path = partialPath else { return nil }
        data.partialFile = path
        data.offset = hasBegun ? size : min(data.offset, size)
        return data.offset > 0 ? data : nil
    }

    func resumeData(of representation: Representation, _ expected: ContentDigest?) -> ResumeData? {
        guard mayContinue, let path = partialPath else { return nil }
        var headers = request.headers
        headers.removeAll { job.sensitiveHeaders.contains($0.name) }
        return ResumeData(
            url: request.url, headers: headers, representation: representation, offset: 0, partialFile: path,
            destination: location?.path, overwritesExisting: job.destination.overwritesExisting,
            expectedDigest: expected)
    }

    /// Flushes the written bytes to the disk, then updates the record.
    func flush() throws(SessionError) {
        do throws(SystemError) {
            try partial?.flush()
        } catch {
            throw .file(job.path, error)
        }
        try writeRecord()
        flushed = (size, stopwatch.elapsed)
    }

    /// Writes the record; if that fails, the bytes of an earlier download are kept.
    func writeFirstRecord() throws(SessionError) {
        do throws(SessionError) {
            try writeRecord()
        } catch {
            if size > 0 { partial.take()?.keep() }
            throw error
        }
    }

    func writeRecord() throws(SessionError) {
        guard isDurable, var data = known ?? resumeData(of: Representation(), job.options.expectedDigest) else {
            return
        }
        data.offset = hasBegun ? size : data.offset
        if !data.isVerifiable { data.offset = 0 }
        do throws(SystemError) {
            lastRecord = try DownloadRecord.write(data)
        } catch {
            throw .file(DownloadRecord.path(beside: data.partialFile), error)
        }
    }

    var partialPath: String? { partial?.path }
}
