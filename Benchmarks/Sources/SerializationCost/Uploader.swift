// SPDX-License-Identifier: MIT

import AsyncNetworking
import ClientKit
import Foundation

/// A client that sends bodies to the server that discards them.
struct Uploader {
    private let manager: SessionManager
    private let url: URL

    init(port: Int) throws {
        guard let url = URL(string: "http://127.0.0.1:\(port)/") else { throw Failure("no URL") }
        self.url = url
        manager = SessionManager()
    }

    func upload(_ body: RequestBody) async throws {
        let response = try await manager.data(for: Request(method: .put, url: url, body: body))
        guard response.statusCode == 200 else { throw Failure("status \(response.statusCode)") }
    }

    /// Creates a sparse file, so that no disk is measured.
    static func makeFile(_ url: URL, size: Int64) throws -> String {
        guard FileManager.default.createFile(atPath: url.path, contents: nil) else { throw Failure("no file") }
        let file = try FileHandle(forWritingTo: url)
        try file.truncate(atOffset: UInt64(size))
        try file.close()
        return url.path
    }

    static func formWithFile(_ path: String) throws -> MultipartFormData {
        var form = MultipartFormData()
        form.append("Ada", name: "user")
        try form.append(file: path, name: "file")
        return form
    }

    static func formWithParts(_ contents: [Data]) throws -> MultipartFormData {
        var form = MultipartFormData()
        for (index, data) in contents.enumerated() {
            try form.append(data, name: "file\(index)", fileName: "\(index).bin")
        }
        return form
    }
}

/// The peak memory of this process.
enum PeakMemory {
    /// Returns by how many bytes the peak during `work` exceeds the memory before it.
    static func growth(_ work: () async throws -> Void) async throws -> Int {
        // proc(5): resets the peak.
        try Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
        let before = try kilobytes("VmRSS:")
        try await work()
        return (try kilobytes("VmHWM:") - before) * 1_024
    }

    private static func kilobytes(_ key: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix(key) }
        guard let line, let value = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first,
            let kilobytes = Int(value)
        else { throw Failure("no \(key)") }
        return kilobytes
    }
}
