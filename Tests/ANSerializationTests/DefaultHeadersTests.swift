// SPDX-License-Identifier: MIT

import ANSerialization
import HTTPTypes
import Testing

@Suite struct DefaultHeadersTests {
    @Test(
        arguments: [
            ([:], nil),
            (["LANG": "C"], nil), (["LANG": "POSIX"], nil), (["LANG": "C.UTF-8"], nil), (["LANG": ""], nil),
            (["LANG": "en_US.UTF-8"], "en-US;q=1"),
            (["LANG": "de"], "de;q=1"),
            (["LANG": "fr_FR@euro"], "fr-FR;q=1"),
            (["LANG": "sr_RS.UTF-8@latin"], "sr-Latn-RS;q=1"),
            (["LANG": "zh_hans_cn"], "zh-Hans-CN;q=1"),
            (["LANG": "es_419"], "es-419;q=1"),
            (["LANG": "en_US", "LC_MESSAGES": "fr_FR", "LC_ALL": "de_DE"], "de-DE;q=1"),
            (["LANG": "en_US", "LC_MESSAGES": "fr_FR", "LC_ALL": ""], "fr-FR;q=1"),
            (["LANG": "en_US", "LC_ALL": "C"], nil),
            (["LANG": "en_US", "LANGUAGE": "de_DE:fr:en"], "de-DE;q=1, fr;q=0.9, en;q=0.8"),
            (["LANG": "en_US", "LANGUAGE": ""], "en-US;q=1"),
            (["LANG": "en_US", "LANGUAGE": "de::de:x\r\ny"], "de;q=1"),
            (["LANG": "C", "LANGUAGE": "de"], nil),
            (["LANGUAGE": "de"], nil),
            (["LANG": "e\r\nX: y"], nil), (["LANG": "en_US_x_y"], nil), (["LANG": "é"], nil), (["LANG": "@"], nil),
            (
                ["LANG": "en_US", "LANGUAGE": "en_US:fr:de:ja:zh_Hans:ko:it:es"],
                "en-US;q=1, fr;q=0.9, de;q=0.8, ja;q=0.7, zh-Hans;q=0.6, ko;q=0.5"
            ),
        ] as [([String: String], String?)])
    func `the languages are those of the locale, at most six`(environment: [String: String], value: String?) {
        #expect(DefaultHeaders.acceptLanguage(environment: environment) == value)
    }

    @Test(arguments: [
        ("tool", "1.2", "x86_64", "tool/1.2 (Linux; x86_64) AsyncNetworking/4.0"),
        ("tool", nil, "aarch64", "tool (Linux; aarch64) AsyncNetworking/4.0"),
        ("my tool(ü)", "1/2", "(a\\b)\r\nc", "my-tool--/1-2 (Linux; abc) AsyncNetworking/4.0"),
        ("工具", "", "x", "unknown (Linux; x) AsyncNetworking/4.0"),
    ])
    func `the user agent consists of tokens and ASCII`(
        program: String, version: String?, architecture: String, value: String
    ) {
        let process = ProcessDescription(program: program, version: version, architecture: architecture)
        #expect(DefaultHeaders.userAgent(process: process, libraryVersion: "4.0") == value)
    }

    @Test func `only fields with a value are included`() {
        let silent = DefaultHeaders(process: ProcessDescription(program: "p"), libraryVersion: "1")
        #expect(silent.fields.map(\.name) == [.userAgent])
        let process = ProcessDescription(program: "p", environment: ["LANG": "de"])
        #expect(
            DefaultHeaders(process: process, libraryVersion: "1").fields[.acceptLanguage] == "de;q=1")
    }

    @Test func `this process has a name and an environment`() {
        let process = ProcessDescription.current(version: "9")
        #expect(!process.program.isEmpty && !process.program.contains("/"))
        #expect(process.version == "9")
        #expect(process.environment["PATH"]?.isEmpty == false)
        #expect(HTTPField.isValidValue(DefaultHeaders(process: process, libraryVersion: "1").userAgent))
    }
}
