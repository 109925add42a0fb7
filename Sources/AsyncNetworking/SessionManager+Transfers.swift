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
        startUpload(of: Result { try request(method, path, headers: headers, body: body) })
    }

    /// Starts to send a request with this body; see ``upload(_:from:method:headers:)``.
    public func upload(_ request: Request, from body: RequestBody) -> UploadTask {
        var request = request
        request.body = body
        return startUpload(of: .success(request))
    }

    /// Starts to write the response of a GET to a file; see ``download(_:to:)-(Request,_)``.
    public func download(_ path: String, to destination: String, headers: HTTPFields = [:]) -> DownloadTask {
        startDownload(of: Result { try request(.get, path, headers: headers) }, to: destination)
    }

    /// Starts to write a response to a file.
    ///
    /// A response with a status outside of 200 to 299 is not written: the task's value throws
    /// ``ANSerialization/SerializationError/rejected(_:)`` with its body, cut off at 1 MiB. The file appears under its name
    /// when it is complete, in place of one that was there; a failure leaves that one as it was.
    public func download(_ request: Request, to destination: String) -> DownloadTask {
        startDownload(of: .success(request), to: destination)
    }

    // Tasks begin here, before the handle is returned: a manager that is told to finish what is running finishes them.

    private func startUpload(of request: Result<Request, any Error>) -> UploadTask {
        let begun = Result { try registry.begin(.upload, request.get()) }
        return UploadTask(direction: .upload) { monitor in
            try await self.collect(begun.get(), reporting: monitor)
        }
    }

    private func startDownload(of request: Result<Request, any Error>, to destination: String) -> DownloadTask {
        let begun = Result { try registry.begin(.download, request.get()) }
        return DownloadTask(direction: .download) { monitor in
            try await self.perform(
                begun.get(), delivery: .streamed, reporting: monitor
            ) { head, body in
                if let rejection = try await Self.rejection(of: head, body) {
                    throw SerializationError.rejected(rejection)
                }
                monitor.accept(exchange: head.redirects.count)
                let size = try await body.write(to: destination)
                return Response(
                    DownloadedFile(path: destination, size: size), head: head, ending: body.ending ?? ResponseEnding())
            }
        }
    }

    /// The rejection of a response that is no file, with as much of its body as an error page has.
    private nonisolated static func rejection(of head: ResponseHead, _ body: ResponseBody) async throws -> Rejection? {
        guard ResponseValidation.statusOnly.rejection(of: head, Data()) != nil else { return nil }
        var page = Data()
        for try await chunk in body {
            page.append(chunk.prefix((1 << 20) - page.count))
            if page.count == 1 << 20 { break }
        }
        return ResponseValidation.statusOnly.rejection(of: head, page)
    }
}
