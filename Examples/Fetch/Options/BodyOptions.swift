// SPDX-License-Identifier: MIT

import ArgumentParser
import AsyncNetworking
import FoundationEssentials

/// The options for the request body.
struct BodyOptions: ParsableArguments {
    @Option(
        name: [.customShort("d"), .customLong("data")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Send a form with POST: text, @FILE, or @- for standard input; repeated values are joined by &. -H sets the type.",
            valueName: "data"))
    var data: [String] = []
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Send JSON with POST: text, @FILE, or @- for standard input.", valueName: "data"))
    var json: String?
    @Option(
        name: [.customShort("F"), .customLong("form")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Send a field of a multipart form with POST; may be repeated.",
            valueName: "name=value|name=@file[;type=…]"))
    var fields: [String] = []
    @Option(
        name: [.customShort("T"), .customLong("upload-file")],
        help: ArgumentHelp(
            "Send a file with PUT, - for standard input; its name is appended to a URL ending in /.",
            valueName: "file"))
    var file: String?
    @Flag(
        help:
            "Resume the upload of -T after an interruption, and one that an earlier run left incomplete, if the server can."
    )
    var resumable = false

    init() {}

    /// Creates the body. Files are read when the body is sent.
    ///
    /// - Throws: ``UsageError``, or `SerializationError` for a file in a form.
    func makeContent() throws -> BodyContent {
        let given = [
            data.isEmpty ? nil : "-d", json.map { _ in "--json" }, fields.isEmpty ? nil : "-F", file.map { _ in "-T" },
        ]
        .compactMap(\.self)
        guard given.count <= 1 else {
            throw UsageError("A request has one body; \(given.joined(separator: " and ")) cannot be combined.")
        }
        if resumable, file == nil || file == "-" {
            throw UsageError("--resumable requires -T with the name of a file.")
        }
        if !data.isEmpty {
            return BodyContent(
                method: .post, body: try makeData(), headers: [.contentType: "application/x-www-form-urlencoded"])
        }
        if let json {
            return BodyContent(
                method: .post, body: try Self.source(json),
                headers: [.contentType: "application/json", .accept: "application/json"])
        }
        if !fields.isEmpty {
            let (contentType, body) = try makeForm().makeBody()
            return BodyContent(method: .post, body: body, headers: [.contentType: contentType])
        }
        if let file {
            return BodyContent(method: .put, body: try Self.source("@" + file), uploadName: file == "-" ? nil : file)
        }
        return BodyContent()
    }

    private func makeData() throws -> RequestBody {
        if data.count == 1 { return try Self.source(data[0]) }
        let pieces = try data.map { text in
            guard text.hasPrefix("@") else { return Data(text.utf8) }
            guard text != "@-" else { throw UsageError("@- cannot be combined with another -d.") }
            do {
                return try Data(contentsOf: URL(filePath: String(text.dropFirst())))
            } catch {
                throw UsageError("\(text.dropFirst()) cannot be read.")
            }
        }
        return .bytes(Data(pieces.joined(separator: Data("&".utf8))))
    }

    private func makeForm() throws -> MultipartFormData {
        var form = MultipartFormData()
        for text in fields {
            let field = try FormField(text)
            switch field.content {
            case .text(let value): form.append(value, name: field.name)
            case .file(let path, let fileName, let mediaType):
                try form.append(file: path, name: field.name, fileName: fileName, mediaType: mediaType)
            }
        }
        return form
    }

    /// Returns the body for an argument: text, a file, or standard input.
    private static func source(_ text: String) throws -> RequestBody {
        guard text.hasPrefix("@") else { return .string(text) }
        let path = String(text.dropFirst())
        guard !path.isEmpty else { throw UsageError("@ requires a file name.") }
        return path == "-" ? .stream(StandardInput()) : .file(path)
    }
}
