// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Recorded requests".

func printCommand(_ api: SessionManager, _ report: Report) async throws {
    // snippet.curl
    let request = try api.request(.post, "reports?draft=1", body: .json(report))
    print(try await api.curlCommand(for: request))
    // snippet.end
}

struct Report: Codable {
    let title: String
    let password: String
}

func record() async throws {
    // snippet.har
    let recorder = try HARRecorder(path: "traffic.har")
    let api = SessionManager(baseURL: URL(string: "https://api.example.com/")) {
        recorder.install(in: &$0)
    }
    print(try await api.get("users/7").statusCode)
    try await recorder.close()
    // snippet.end
}

func show() throws {
    // snippet.waterfall
    let archive = try HAR(Data(contentsOf: URL(filePath: "traffic.har")))
    let page = try archive.html(title: "Traffic of the import")
    try Data(page.utf8).write(to: URL(filePath: "traffic.html"))
    // snippet.end
}

func hideMore() throws {
    // snippet.redaction
    var rules = Redaction.standard
    rules.names.formUnion(["iban", "birthday"])
    rules.hidesQueryValues = false
    let recorder = try HARRecorder(path: "traffic.har", redacting: rules, maximumBodySize: 1 << 20)
    // snippet.end
    _ = recorder
}
