// SPDX-License-Identifier: MIT

import ArgumentParser
import AsyncNetworking
import FoundationEssentials

/// The options that say what is sent.
struct BodyOptions: ParsableArguments {
    @Option(
        name: [.customShort("d"), .customLong("data")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Send a form by POST: text, @FILE, or @- for standard input; repeated ones are joined by &. -H changes the type.",
            valueName: "data"))
    var data: [String] = []
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Send JSON by POST: text, @FILE, or @- for standard input.", valueName: "data"))
    var json: String?
    @Option(
        name: [.customShort("F"), .customLong("form")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Send a field of a multipart form by POST; may be repeated.",
            valueName: "name=value|name=@file[;type=…]"))
    var fields: [String] = []
    @Option(
        name: [.customShort("T"), .customLong("upload-file")],
        help: ArgumentHelp(
            "Send a file by PUT, - for standard input; a URL ending in / gets its name.", valueName: "file"))
    var file: String?

    init() {}

    /// What is sent, read from the files by need.
    ///
    /// - Throws: ``UsageError``, or `SerializationError` for a file of a form.
    func makeContent() throws -> BodyContent {
        let given = [
            data.isEmpty ? nil : "-d", json.map { _ in "--json" }, fields.isEmpty ? nil : "-F", file.map { _ in "-T" },
        ]
        .compactMap(\.self)
        guard given.count <= 1 else {
            throw UsageError("A request has one body; \(given.joined(separator: " and ")) do not go together.")
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
            guard text != "@-" else { throw UsageError("@- does not go with another -d.") }
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

    /// The body that an argument means: text, a file, or standard input.
    private static func source(_ text: String) throws -> RequestBody {
        guard text.hasPrefix("@") else { return .string(text) }
        let path = String(text.dropFirst())
        guard !path.isEmpty else { throw UsageError("@ wants the name of a file.") }
        return path == "-" ? .stream(StandardInput()) : .file(path)
    }
}
