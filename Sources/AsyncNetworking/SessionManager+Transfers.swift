// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSerialization
import FoundationEssentials
public import HTTPTypes

extension SessionManager {
    /// Starts to send a body, by POST unless said otherwise.
    ///
    /// The task's value is the response, whatever its status is; its progress counts the bytes handed to the connection,
    /// which is less than a send buffer ahead of what the server has read.
    public func upload(
        _ path: String, from body: RequestBody, method: HTTPRequest.Method = .post, headers: HTTPFields = [:]
    ) -> UploadTask {
        UploadTask(direction: .upload) { monitor in
            let request = try Request(method: method, url: self.resolve(path), headers: headers, body: body)
            return try await self.upload(request, reporting: monitor)
        }
    }

    /// Starts to send a request with this body; see ``upload(_:from:method:headers:)``.
    public func upload(_ request: Request, from body: RequestBody) -> UploadTask {
        var request = request
        request.body = body
        return UploadTask(direction: .upload) { [request] monitor in
            try await self.upload(request, reporting: monitor)
        }
    }

    /// Starts to write the response of a GET to a file; see ``download(_:to:)-(Request,_)``.
    public func download(_ path: String, to destination: String, headers: HTTPFields = [:]) -> DownloadTask {
        DownloadTask(direction: .download) { monitor in
            let request = try Request(url: self.resolve(path), headers: headers)
            return try await self.download(request, to: destination, reporting: monitor)
        }
    }

    /// Starts to write a response to a file.
    ///
    /// A response with a status outside of 200 to 299 is not written: the task's value throws
    /// ``ANSerialization/SerializationError/rejected(_:)`` with its body. The file appears under its name when it is
    /// complete, in place of one that was there; a failure leaves that one as it was.
    public func download(_ request: Request, to destination: String) -> DownloadTask {
        DownloadTask(direction: .download) { monitor in
            try await self.download(request, to: destination, reporting: monitor)
        }
    }

    private nonisolated func resolve(_ path: String) throws -> URL {
        do throws(SerializationError) {
            return try resolver.resolve(path)
        } catch {
            throw SessionError.serialization(error)
        }
    }

    private nonisolated func upload(_ request: Request, reporting monitor: ProgressMonitor) async throws -> Response<Data> {
        let limit = request.options?.maximumBodySize ?? configuration.transfer.maximumBodySize
        return try await perform(
            .upload, request, delivery: .collected(upTo: limit), reporting: monitor
        ) { head, body, redirects in
            let data = try await body.collect(upTo: limit)
            return Response(data, head: head, ending: body.ending ?? ResponseEnding(), redirects: redirects)
        }
    }

    private nonisolated func download(
        _ request: Request, to destination: String, reporting monitor: ProgressMonitor
    ) async throws -> Response<DownloadedFile> {
        try await perform(.download, request, delivery: .streamed, reporting: monitor) { head, body, redirects in
            if let rejection = try await Self.rejection(of: head, body) {
                throw SerializationError.rejected(rejection)
            }
            let size = try await body.write(to: destination)
            return Response(
                DownloadedFile(path: destination, size: size), head: head, ending: body.ending ?? ResponseEnding(),
                redirects: redirects)
        }
    }

    /// The rejection of a response that is no file, with as much of its body as an error page has.
    private nonisolated static func rejection(of head: ResponseHead, _ body: ResponseBody) async throws -> Rejection? {
        guard ResponseValidation.statusOnly.rejection(of: head, Data()) != nil else { return nil }
        var page = Data()
        for try await chunk in body where page.count < 1 << 20 { page.append(chunk) }
        return ResponseValidation.statusOnly.rejection(of: head, page)
    }
}
