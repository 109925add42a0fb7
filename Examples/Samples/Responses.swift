// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingXML
import Foundation
import FoundationXML

// The samples of the articles "Responses" and "Validation".

func makeValues(_ api: SessionManager) async throws {
    // snippet.overview
    let user = try await api.get("users/7", as: .decodable(User.self)).value
    let tree = try await api.get("users/7", as: .json).value
    let page = try await api.get("about", as: .string).value
    // snippet.end
    print(user, tree, page)
}

func readJSON(_ api: SessionManager) async throws {
    // snippet.json
    let number = try await api.get("count", as: .json(allowsFragments: true)).value
    let settings = try await api.get("settings", as: .json(allowsFragments: true, allowsJSON5: true)).value
    // snippet.end
    print(number, settings)
}

func ruleEmptyResponses(_ api: SessionManager) async throws {
    // snippet.json-2
    var serializer = DecodableResponseSerializer(User?.self)
    serializer.emptyResponses = .noContent
    // snippet.end
    _ = try await api.get("users/7", as: serializer)
}

func explainDecoding(_ api: SessionManager) async throws {
    // snippet.json-3
    do {
        _ = try await api.get("users", as: .decodable([User].self))
    } catch SessionError.serialization(.decoding(let failure)) {
        print(failure.path ?? "", failure.excerpt ?? "")
    }
    // snippet.end
}

struct LineDecoder: Sendable {
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
        return try JSONDecoder().decode(type, from: JSONEncoder().encode(lines))
    }
}

// snippet.custom-decoders
extension LineDecoder: ResponseDecoder {}
// snippet.end

func useAnyDecoder(_ api: SessionManager) async throws {
    // snippet.custom-decoders-2
    let words = try await api.get(
        "words", as: .decodable([String].self, decoder: LineDecoder(), mediaTypes: ["text/plain"]))
    // snippet.end
    print(words.value)
}

func nameCharset(_ api: SessionManager) async throws {
    // snippet.text
    let text = try await api.get("old.html", as: .string(.windows1252)).value
    // snippet.end
    print(text)
}

enum Reply: Sendable {
    case document(JSONValue)
    case text(String)
}

func tryInOrder(_ api: SessionManager) async throws {
    // snippet.alternatives
    let reply = CompoundResponseSerializer<Reply>([
        JSONResponseSerializer().map { .document($0) },
        StringResponseSerializer().accepting(mediaTypes: ["text/*"]).map { .text($0) },
    ])
    // snippet.end
    _ = try await api.get("reply", as: reply)
}

func readXML(_ api: SessionManager, _ delegate: any XMLParserDelegate) async throws {
    // snippet.xml
    let feed = try await api.get("feed", as: .xmlDocument).value
    let titles = try feed.makeDocument().nodes(forXPath: "/rss/channel/item/title")
    try feed.parse(with: delegate)
    // snippet.end
    print(titles)
}

func readParts(_ api: SessionManager, _ request: Request) async throws {
    // snippet.multipart-responses
    try await api.withResponse(for: request) { head, body in
        for try await part in try body.parts(of: head) {
            print(part.mediaType ?? "?", part.range?.bytes ?? 0...0)
            for try await chunk in part.body { print(chunk.count) }
        }
    }
    // snippet.end
}

func changeValidation(_ api: SessionManager) async throws {
    // snippet.validation-of-a-single-request
    let page = try await api.get("status", as: .json.anyMediaType).value
    let state = try await api.get("health", as: .json.anyStatus).value
    let whatever = try await api.get("health", as: .json.unvalidated).value
    let cached = try await api.get("users", as: .json.accepting(statuses: [200, 304])).value
    let script = try await api.get("users", as: .json.alsoAccepting("text/html", "text/plain")).value
    // snippet.end
    print(page, state, whatever, cached, script)
}

func readRejection(_ api: SessionManager) async throws {
    // snippet.rejected-responses
    do {
        _ = try await api.get("users/99", as: .decodable(User.self))
    } catch SessionError.serialization(.rejected(let rejection)) {
        print(rejection.head.status, rejection.head.mediaType ?? "no type", rejection.head.headers)
        print(rejection.rejectsStatus, rejection.rejectsMediaType, rejection.validation)
        print(try rejection.decoded(as: Problem.self).title)
        print(try rejection.value(as: .string))
    }
    // snippet.end
}

func configureJSON(_ url: URL) -> SessionManager {
    // snippet.session-json
    let api = SessionManager(baseURL: url) {
        $0.json.encoder.keyEncodingStrategy = .convertToSnakeCase
        $0.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
    }
    // snippet.end
    return api
}
