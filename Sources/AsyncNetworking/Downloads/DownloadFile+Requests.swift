// SPDX-License-Identifier: MIT

import ANHTTP
import HTTPTypes

// The requests of a download.

extension DownloadFile {
    /// The next request, which asks for the missing bytes in a form that a later request can continue.
    private func next(hasProgress: Bool) -> FurtherRequest {
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

    /// Returns the request for the bytes that are missing after a response has failed; `nil` if the download cannot be
    /// continued.
    func rest() -> FurtherRequest? {
        guard let data = currentResumeData else { return nil }
        planRest(after: data)
        defer { longest = max(longest, data.offset) }
        return next(hasProgress: data.offset > longest)
    }

    /// Returns a request for the whole file.
    ///
    /// - Parameter failure: Why the bytes cannot be continued.
    /// - Throws: ``SessionError/notResumable(_:)`` if the program does not permit starting over, or there were too many
    ///   requests.
    func startOver(because failure: SessionError.ResumeFailure) throws(SessionError) -> FurtherRequest {
        guard job.options.startsOverIfNotResumable else {
            // It is unknown which of the bytes are correct.
            known = nil
            throw .notResumable(failure)
        }
        plan = ResumePlan(hasOwnRange: hasOwnRange)
        return try followUp()
    }

    func followUp() throws(SessionError) -> FurtherRequest {
        guard followUps.permitsNext(after: received) else { throw .notResumable(.tooManyParts) }
        return next(hasProgress: true)
    }

    /// Whether the response's bytes differ from those sent, because they are decoded or an interceptor has replaced
    /// them.
    func isChanged(_ head: ResponseHead, _ body: ResponseBody) -> Bool {
        body.provenance == .replaced || !storesAsReceived && decodesContent && head.hasContentCoding
    }

    func planRest(after data: ResumeData) {
        plan = ResumePlan(
            offset: data.offset, of: data.representation, startsOver: job.options.startsOverIfNotResumable,
            isIdentity: storesAsReceived)
    }
}
