// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

/// The demo with a URL from the command line. It prints the responses; a step fails on errors, but not on a status
/// code.
struct URLTour {
    let url: URL
    let directory: TemporaryDirectory
    private let progress = DemoProgress()

    init(url: URL, directory: TemporaryDirectory) {
        self.url = url
        self.directory = directory
    }

    /// Runs all steps.
    func run(_ report: inout DemoReport) async throws {
        report.say("A tour of AsyncNetworking \(SessionManager.libraryVersion) with \(Request(url: url)).")
        try await withSession { api in
            try await report.step("GET", "let response = try await api.data(for: Request(url: url))") {
                try await get(api)
            }
            guard !report.hasFailure else { return report.say("\nThe other steps require a server that responds.") }
            try await report.step("HEAD", "try await api.head(url)") {
                try await head(api)
            }
            try await report.step("POST of a form", #"try await api.post(url, parameters: ["name": "Ada"])"#) {
                try await post(api)
            }
            try await report.step("PUT of a file of 1 MB", "api.upload(url, body: .file(path), method: .put)") {
                try await upload(api)
            }
            try await report.step("Download into a file", "api.download(url, to: .file(path))") {
                try await download(api)
            }
            try await report.step("A cancelled download", "download.cancel()") {
                try await cancel(api)
            }
        }
        guard !report.hasFailure else { return }
        try await report.step("An untrusted certificate", "configuration.tls.trustRoots = .pem(…)") {
            try await refuseCertificate()
        }
    }

    private func get(_ api: SessionManager) async throws -> [String] {
        let response = try await api.data(for: Request(url: url))
        var lines = [Self.summary(response)]
        lines += Self.beginning(of: response)
        lines += TraceTable.text(response.metrics, title: "Where the time went:").split(separator: "\n").map(
            String.init)
        return lines
    }

    private func head(_ api: SessionManager) async throws -> [String] {
        let response = try await api.head(url.absoluteString)
        return [
            "Status \(response.statusCode), \(response.headers.count) header fields, \(response.metrics.isConnectionReused ? "on the same connection" : "on a new connection")"
        ]
    }

    private func post(_ api: SessionManager) async throws -> [String] {
        let request = try api.request(.post, url.absoluteString, parameters: ["name": "Ada", "language": "Swift"])
        let response = try await api.data(for: request)
        return [Self.summary(response)] + Self.beginning(of: response)
    }

    private func upload(_ api: SessionManager) async throws -> [String] {
        let path = try directory.write("upload.bin", StubServer.generatedBytes(1_000_000))
        let upload = api.upload(url.absoluteString, body: .file(path), method: .put)
        await progress.follow(upload.progress, label: "upload")
        return [Self.summary(try await upload.value)]
    }

    private func download(_ api: SessionManager) async throws -> [String] {
        let download = api.download(url.absoluteString, to: .file(directory.path("download")))
        await progress.follow(download.progress, label: "download")
        let file = try await download.value
        return ["Status \(file.response.statusCode); the file has \(file.size) bytes"]
    }

    private func cancel(_ api: SessionManager) async throws -> [String] {
        let before = try directory.names()
        let download = api.download(url.absoluteString, to: .file(directory.path("cancelled")))
        download.cancel()
        do {
            let size = try await download.value.size
            return ["The download completed before it was cancelled: \(Quantity.bytes(size))"]
        } catch is CancellationError {
            try expect(directory.names() == before, "A file was left behind.")
            return ["CancellationError; no file is left"]
        }
    }

    private func refuseCertificate() async throws -> [String] {
        guard url.scheme?.lowercased() == "https" else { return ["Skipped: the scheme is not https."] }
        let stranger = try TestCertificateAuthority()
        do {
            try await withSession(configure: { $0.tls.trustRoots = .pem(stranger.pemData) }) { api in
                _ = try await api.data(for: Request(url: url))
            }
        } catch let error as SessionError where error.isTrustFailure {
            return ["\(error)"]
        }
        throw DemoError("The certificate of an untrusted authority was accepted.")
    }

    private static func summary(_ response: Response<Data>) -> String {
        let type = response.head.mediaType.map { ", \($0)" } ?? ""
        let redirects = response.redirectHistory.isEmpty ? "" : ", after \(response.redirectHistory.count) redirects"
        return
            "Status \(response.statusCode), \(response.head.version), \(Quantity.bytes(Int64(response.value.count)))\(type)\(redirects)"
    }

    /// Returns the first lines of a text.
    private static func beginning(of response: Response<Data>) -> [String] {
        guard let text = String(validating: response.value.prefix(2000), as: UTF8.self), !text.contains("\0") else {
            return []
        }
        let lines = text.split(separator: "\n").prefix(4).map { line in
            "  │ " + (line.count > 90 ? line.prefix(89) + "…" : line)
        }
        return lines
    }
}
