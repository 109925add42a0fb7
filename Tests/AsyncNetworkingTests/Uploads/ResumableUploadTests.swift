// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

/// A step of a dialogue between a ``ResumableUpload`` and a server.
enum UploadStep: Sendable {
    /// The upload sends this request: the method, the path, the range of the content, and `Upload-Complete`; or does
    /// something else.
    case does(String)
    /// The server answers.
    case gets(Int, [String: String] = [:])
    /// The server sends an interim response.
    case interim([String: String])
    /// The connection is lost.
    case loses(reached: Bool = true, sentAll: Bool = false)
    /// The wait is over, at this time in seconds.
    case resumes(at: Int64 = 0)
}

struct UploadDialogue: CustomTestStringConvertible, Sendable {
    let name: String
    let uploadProtocol: UploadProtocol?
    var length: Int64 = 10
    var change: @Sendable (inout UploadOptions) -> Void = { _ in }
    var mayRepeatCreation = false
    var isRecognized = false
    let steps: [UploadStep]

    var testDescription: String { name }

    static let tus = ["Tus-Resumable": "1.0.0", "Tus-Extension": "creation,termination,checksum,expiration"]
    static let interop = ["Upload-Draft-Interop-Version": "8"]

    /// The steps up to the URL of a tus upload.
    static let tusCreation: [UploadStep] = [
        .does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .gets(201, ["Location": "/u/1"]),
    ]

    private static func repeated(_ count: Int, _ steps: [UploadStep]) -> [UploadStep] {
        Array(repeating: steps, count: count).flatMap(\.self)
    }

    static let tusCases: [UploadDialogue] = [
        UploadDialogue(
            name: "creation and one part", uploadProtocol: nil,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .gets(204, ["Upload-Offset": "10"]), .does("finish"),
            ]),
        UploadDialogue(
            name: "the version is announced without Tus-Resumable", uploadProtocol: nil,
            steps: [.does("OPTIONS /up"), .gets(200, ["Tus-Version": "1.0.0,0.2.2"]), .does("POST /up 0..<0")]),
        UploadDialogue(
            name: "an empty file", uploadProtocol: .tus, length: 0,
            steps: [
                .does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .gets(201, ["Location": "/u/1"]),
                .does("finish"),
            ]),
        UploadDialogue(
            name: "an interruption", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .loses(), .resumes(), .does("HEAD /u/1"),
                .gets(200, ["Upload-Offset": "7"]),
                .does("PATCH /u/1 7..<10"), .gets(204, ["Upload-Offset": "10"]), .does("finish"),
            ]),
        UploadDialogue(
            name: "the last response is lost", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .loses(sentAll: true), .resumes(), .does("HEAD /u/1"),
                .gets(200, ["Upload-Offset": "10", "Upload-Length": "10"]), .does("finish"),
            ]),
        UploadDialogue(
            name: "access that is denied after the end", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .loses(sentAll: true), .resumes(), .does("HEAD /u/1"), .gets(403),
                .does("finish"),
            ]),
        UploadDialogue(
            name: "the creation is interrupted", uploadProtocol: .tus,
            steps: [
                .does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .loses(), .resumes(),
                .does("POST /up 0..<0"), .gets(201, ["Location": "http://b.example/u/2"]), .does("PATCH /u/2 0..<10"),
            ]),
        UploadDialogue(
            name: "a busy server is asked again for its protocol", uploadProtocol: nil,
            steps: [
                .does("OPTIONS /up"), .gets(429), .does("wait"), .resumes(), .does("OPTIONS /up"), .gets(425),
                .does("wait"), .resumes(), .does("OPTIONS /up"), .gets(423), .does("wait"), .resumes(),
                .does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .gets(423), .does("wait"), .resumes(),
                .does("POST /up 0..<0"),
            ]),
        UploadDialogue(
            name: "the creation of an empty file may have completed it", uploadProtocol: .tus, length: 0,
            steps: [.does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .gets(503), .does("finish")]),
        UploadDialogue(
            name: "an empty file may be created again", uploadProtocol: .tus, length: 0, isRecognized: true,
            steps: [.does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .gets(503), .does("wait")]),
        UploadDialogue(
            name: "the creation of an empty file is a POST, whatever the program's method", uploadProtocol: .tus,
            length: 0, mayRepeatCreation: true,
            steps: [.does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .gets(503), .does("finish")]),
        UploadDialogue(
            name: "more bytes than were sent", uploadProtocol: .tus, change: { $0.partSize = 4 },
            steps: tusCreation + [
                .does("PATCH /u/1 0..<4"), .gets(204, ["Upload-Offset": "10"]),
                .does("fail it has more bytes than were sent"),
            ]),
        UploadDialogue(
            name: "a size limit that is no number", uploadProtocol: .tus,
            steps: [
                .does("OPTIONS /up"), .gets(204, tus.merging(["Tus-Max-Size": "-1"]) { $1 }), .does("POST /up 0..<0"),
            ]),
        UploadDialogue(
            name: "a conflict", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .gets(409), .does("HEAD /u/1"), .gets(200, ["Upload-Offset": "3"]),
                .does("PATCH /u/1 3..<10"),
            ]),
        UploadDialogue(
            name: "a wrong checksum", uploadProtocol: .tus, change: { $0.verifiesParts = true },
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .gets(460), .does("wait"), .resumes(), .does("HEAD /u/1"),
                .gets(200, ["Upload-Offset": "0"]), .does("PATCH /u/1 0..<10"),
            ]),
        UploadDialogue(
            name: "a locked upload", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .gets(423), .does("wait"), .resumes(), .does("HEAD /u/1"), .gets(423),
                .does("wait"), .resumes(), .does("HEAD /u/1"), .gets(200, ["Upload-Offset": "0"]),
                .does("PATCH /u/1 0..<10"),
            ]),
        UploadDialogue(
            name: "a server that forgets", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .gets(500), .does("wait"), .resumes(), .does("HEAD /u/1"),
                .gets(200, ["Upload-Offset": "4"]), .does("PATCH /u/1 4..<10"), .loses(), .resumes(),
                .does("HEAD /u/1"), .gets(410), .does("POST /up 0..<0"), .gets(201, ["Location": "/u/2"]),
                .does("PATCH /u/2 0..<10"), .loses(), .resumes(), .does("HEAD /u/2"), .gets(403),
                .does("POST /up 0..<0"), .gets(201, ["Location": "/u/3"]), .does("PATCH /u/3 0..<10"), .loses(),
                .resumes(), .does("HEAD /u/3"), .gets(404), .does("POST /up 0..<0"), .gets(201, ["Location": "/u/4"]),
                .does("PATCH /u/4 0..<10"), .loses(), .resumes(), .does("HEAD /u/4"), .gets(404),
                .does("fail it has forgotten the upload repeatedly"),
            ]),
        UploadDialogue(
            name: "an expired upload is not asked for", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"),
                .gets(204, ["Upload-Offset": "4", "Upload-Expires": "Thu, 01 Jan 1970 00:01:00 GMT"]),
                .does("PATCH /u/1 4..<10"), .loses(), .resumes(at: 59), .does("HEAD /u/1"), .gets(503), .does("wait"),
                .resumes(at: 60), .does("POST /up 0..<0"),
            ]),
        UploadDialogue(
            name: "a server without the last bytes of an answer", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .gets(204, ["Upload-Offset": "6"]), .does("PATCH /u/1 6..<10"), .gets(204),
                .does("HEAD /u/1"), .gets(200, ["Upload-Offset": "10"]), .does("finish"),
            ]),
        UploadDialogue(
            name: "parts", uploadProtocol: .tus, change: { $0.partSize = 4 },
            steps: tusCreation + [
                .does("PATCH /u/1 0..<4"), .gets(204, ["Upload-Offset": "4"]), .does("PATCH /u/1 4..<8"),
                .gets(204, ["Upload-Offset": "8"]), .does("PATCH /u/1 8..<10"), .gets(204, ["Upload-Offset": "10"]),
                .does("finish"),
            ]),
        UploadDialogue(
            name: "too large", uploadProtocol: nil,
            steps: [
                .does("OPTIONS /up"), .gets(204, ["Tus-Resumable": "1.0.0", "Tus-Max-Size": "9"]),
                .does("fail tooLarge(maximum: Optional(9))"),
            ]),
        UploadDialogue(
            name: "too large by 413", uploadProtocol: .tus,
            steps: [
                .does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .gets(413),
                .does("fail tooLarge(maximum: nil)"),
            ]),
        UploadDialogue(
            name: "a creation without a URL", uploadProtocol: .tus,
            steps: [
                .does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .gets(201),
                .does("fail it created an upload without a URL"),
            ]),
        UploadDialogue(
            name: "a rejected creation", uploadProtocol: .tus,
            steps: [.does("OPTIONS /up"), .gets(204, tus), .does("POST /up 0..<0"), .gets(403), .does("finish")]),
        UploadDialogue(
            name: "an offset beyond the end", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .gets(204, ["Upload-Offset": "11"]),
                .does("fail it has more bytes than were sent"),
            ]),
        UploadDialogue(
            name: "an offset that is not a number", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .loses(), .resumes(), .does("HEAD /u/1"),
                .gets(200, ["Upload-Offset": "+1"]),
                .does("fail it does not tell how many bytes it has"),
            ]),
        UploadDialogue(
            name: "an upload of another length", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .loses(), .resumes(), .does("HEAD /u/1"),
                .gets(200, ["Upload-Offset": "4", "Upload-Length": "11"]), .does("POST /up 0..<0"),
            ]),
        UploadDialogue(
            name: "many interruptions without progress, each after a wait", uploadProtocol: nil,
            steps: tusCreation + [.does("PATCH /u/1 0..<10")]
                + repeated(70, [.loses(reached: false), .resumes(), .does("HEAD /u/1")])
                + repeated(
                    70,
                    [
                        .gets(200, ["Upload-Offset": "0"]), .does("PATCH /u/1 0..<10"), .loses(), .resumes(),
                        .does("HEAD /u/1"),
                    ])),
        UploadDialogue(
            name: "many exchanges without progress, and without a wait", uploadProtocol: nil,
            steps: tusCreation + [.does("PATCH /u/1 0..<10")]
                + repeated(
                    30,
                    [
                        .gets(409), .does("HEAD /u/1"), .gets(200, ["Upload-Offset": "0"]), .does("PATCH /u/1 0..<10"),
                    ])
                + [
                    .gets(409), .does("HEAD /u/1"), .gets(200, ["Upload-Offset": "0"]),
                    .does("fail it makes no progress"),
                ]),
        UploadDialogue(
            name: "a server that loses bytes", uploadProtocol: .tus,
            steps: tusCreation + [
                .does("PATCH /u/1 0..<10"), .gets(204, ["Upload-Offset": "6"]), .does("PATCH /u/1 6..<10"), .gets(409),
                .does("HEAD /u/1"), .gets(200, ["Upload-Offset": "2"]), .does("PATCH /u/1 2..<10"),
            ]),
    ]

    static let ietfCases: [UploadDialogue] = [
        UploadDialogue(
            name: "all bytes with the creation (draft §4.2, example A)", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1", "Upload-Limit": "max-size=100"]),
                .interim(["Upload-Offset": "5"]), .gets(200, ["Location": "/u/1", "Upload-Complete": "?1"]),
                .does("finish"),
            ]),
        UploadDialogue(
            name: "a server without support", uploadProtocol: nil,
            steps: [
                .does("OPTIONS /up"), .gets(405), .does("POST /up 0..<10 ?1"), .gets(201, ["Location": "/x"]),
                .does("finish"),
            ]),
        UploadDialogue(
            name: "a server that does not implement OPTIONS", uploadProtocol: nil,
            steps: [.does("OPTIONS /up"), .gets(501), .does("POST /up 0..<10 ?1"), .gets(200), .does("finish")]),
        UploadDialogue(
            name: "a server of an old version of HTTP", uploadProtocol: nil,
            steps: [.does("OPTIONS /up"), .gets(505), .does("POST /up 0..<10 ?1"), .gets(501), .does("finish")]),
        UploadDialogue(
            name: "a server that is busy when it is asked", uploadProtocol: nil,
            steps: [.does("OPTIONS /up"), .gets(507), .does("wait"), .resumes(), .does("OPTIONS /up")]),
        UploadDialogue(
            name: "limits that are discovered", uploadProtocol: nil,
            steps: [
                .does("OPTIONS /up"), .gets(204, ["Upload-Limit": "max-append-size=4, min-append-size=2, other=?1"]),
                .does("POST /up 0..<4 ?0"), .gets(201, ["Location": "/u/1", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 4..<8 ?0"), .gets(204, ["Upload-Complete": "?0"]), .does("PATCH /u/1 8..<10 ?1"),
                .gets(200, ["Upload-Complete": "?1"]), .does("finish"),
            ]),
        UploadDialogue(
            name: "a part with the creation (example B)", uploadProtocol: .ietf, change: { $0.partSize = 4 },
            steps: [
                .does("POST /up 0..<4 ?0"), .interim(["Location": "http://a.example/u/3"]),
                .gets(201, ["Location": "/u/3", "Upload-Complete": "?0", "Upload-Limit": "max-size=100"]),
                .does("PATCH /u/3 4..<8 ?0"),
            ]),
        UploadDialogue(
            name: "an error after the interim response (example C)", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .gets(500), .does("wait"), .resumes(),
                .does("HEAD /u/1"), .gets(204, ["Upload-Offset": "6", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 6..<10 ?1"), .gets(500, ["Upload-Complete": "?1"]), .does("finish"),
            ]),
        UploadDialogue(
            name: "content that the resource rejects (example D)", uploadProtocol: .ietf, change: { $0.partSize = 4 },
            steps: [
                .does("POST /up 0..<4 ?0"), .interim(["Location": "/u/1"]), .gets(400, ["Upload-Complete": "?1"]),
                .does("finish"),
            ]),
        UploadDialogue(
            name: "an interruption after the interim response", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(), .resumes(), .does("HEAD /u/1"),
                .gets(204, ["Upload-Offset": "6", "Upload-Length": "10", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 6..<10 ?1"), .interim(["Upload-Offset": "8"]), .gets(200, ["Upload-Complete": "?1"]),
                .does("finish"),
            ]),
        UploadDialogue(
            name: "an interruption before the interim response", uploadProtocol: .ietf,
            steps: [.does("POST /up 0..<10 ?1"), .loses(), .does("give up")]),
        UploadDialogue(
            name: "an interruption before the interim response of an idempotent request", uploadProtocol: .ietf,
            mayRepeatCreation: true,
            steps: [.does("POST /up 0..<10 ?1"), .loses(), .resumes(), .does("POST /up 0..<10 ?1")]),
        UploadDialogue(
            name: "a connection that could not be made", uploadProtocol: .ietf,
            steps: [.does("POST /up 0..<10 ?1"), .loses(reached: false), .resumes(), .does("POST /up 0..<10 ?1")]),
        UploadDialogue(
            name: "a conflict with the offset of the server (§4.4)", uploadProtocol: .ietf,
            change: { $0.partSize = 4 },
            steps: [
                .does("POST /up 0..<4 ?0"), .gets(201, ["Location": "/u/1", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 4..<8 ?0"), .gets(409, ["Upload-Offset": "2", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 2..<6 ?0"),
            ]),
        UploadDialogue(
            name: "a lost last response that the server repeats", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(sentAll: true), .resumes(),
                .does("HEAD /u/1"), .gets(204, ["Upload-Offset": "10", "Upload-Complete": "?1"]),
                .does("PATCH /u/1 10..<10 ?1"), .gets(200, ["Upload-Complete": "?1"]), .does("finish"),
            ]),
        UploadDialogue(
            name: "a lost last response that the server does not repeat", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(sentAll: true), .resumes(),
                .does("HEAD /u/1"), .gets(204, ["Upload-Offset": "10", "Upload-Complete": "?1"]),
                .does("PATCH /u/1 10..<10 ?1"), .gets(400, ["Upload-Complete": "?0"]), .does("finish as located"),
            ]),
        UploadDialogue(
            name: "all bytes are there, and the upload is not complete", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(sentAll: true), .resumes(),
                .does("HEAD /u/1"), .gets(204, ["Upload-Offset": "10", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 10..<10 ?1"), .gets(204, ["Upload-Complete": "?0"]),
                .does("fail it does not complete the upload"),
            ]),
        UploadDialogue(
            name: "a server that forgets before the end", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(), .resumes(), .does("HEAD /u/1"),
                .gets(404), .does("POST /up 0..<10 ?1"),
            ]),
        UploadDialogue(
            name: "a server that forgets after the end", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(sentAll: true), .resumes(),
                .does("HEAD /u/1"), .gets(404), .does("fail outcomeUnknown"),
            ]),
        UploadDialogue(
            name: "a server that forgets an upload without content after its end", uploadProtocol: .ietf, length: 0,
            steps: [
                .does("POST /up 0..<0 ?1"), .interim(["Location": "/u/1"]), .loses(), .resumes(), .does("HEAD /u/1"),
                .gets(404), .does("fail outcomeUnknown"),
            ]),
        UploadDialogue(
            name: "an end without content that has not reached the server completes nothing", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(), .resumes(), .does("HEAD /u/1"),
                .gets(204, ["Upload-Offset": "10", "Upload-Complete": "?0"]), .does("PATCH /u/1 10..<10 ?1"),
                .loses(reached: false), .resumes(), .does("HEAD /u/1"), .gets(404), .does("POST /up 0..<10 ?1"),
            ]),
        UploadDialogue(
            name: "an end without content that has not reached the server, after one that may have",
            uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(sentAll: true), .resumes(),
                .does("HEAD /u/1"), .gets(204, ["Upload-Offset": "10", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 10..<10 ?1"), .loses(reached: false), .resumes(), .does("HEAD /u/1"), .gets(404),
                .does("fail outcomeUnknown"),
            ]),
        UploadDialogue(
            name: "a server that forgets after the end of an idempotent request", uploadProtocol: .ietf,
            mayRepeatCreation: true,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(sentAll: true), .resumes(),
                .does("HEAD /u/1"), .gets(404), .does("POST /up 0..<10 ?1"),
            ]),
        UploadDialogue(
            name: "a server that completes an upload before its last byte", uploadProtocol: .ietf,
            change: { $0.partSize = 4 },
            steps: [
                .does("POST /up 0..<4 ?0"), .gets(201, ["Location": "/u/1", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 4..<8 ?0"), .gets(200, ["Upload-Complete": "?1"]),
                .does("fail it has ended the upload before its last byte"),
            ]),
        UploadDialogue(
            name: "a server that recognizes a completed upload by its key", uploadProtocol: .ietf,
            change: { $0.partSize = 4 }, isRecognized: true,
            steps: [.does("POST /up 0..<4 ?0"), .gets(200, ["Upload-Complete": "?1"]), .does("finish")]),
        UploadDialogue(
            name: "a server that recognizes an upload by its key", uploadProtocol: .ietf, change: { $0.partSize = 4 },
            isRecognized: true,
            steps: [
                .does("POST /up 0..<4 ?0"),
                .gets(201, ["Location": "/u/1", "Upload-Complete": "?0", "Upload-Offset": "8"]),
                .does("PATCH /u/1 8..<10 ?1"),
            ]),
        UploadDialogue(
            name: "a conflict with an offset beyond what was sent", uploadProtocol: .ietf, change: { $0.partSize = 4 },
            steps: [
                .does("POST /up 0..<4 ?0"), .gets(201, ["Location": "/u/1", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 4..<8 ?0"), .gets(409, ["Upload-Offset": "9", "Upload-Complete": "?0"]),
                .does("HEAD /u/1"), .gets(204, ["Upload-Offset": "9", "Upload-Complete": "?0"]),
                .does("fail it has more bytes than were sent"),
            ]),
        UploadDialogue(
            name: "too large by an interim response", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1", "Upload-Limit": "max-size=9"]), .gets(500),
                .does("fail tooLarge(maximum: Optional(9))"),
            ]),
        UploadDialogue(
            name: "a limit in a 413", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .gets(413, ["Upload-Limit": "max-append-size=4"]),
                .does("POST /up 0..<4 ?0"),
            ]),
        UploadDialogue(
            name: "a 413 without a limit", uploadProtocol: .ietf, length: 300_000,
            steps: [
                .does("POST /up 0..<300000 ?1"), .gets(413), .does("POST /up 0..<150000 ?0"), .gets(413),
                .does("POST /up 0..<75000 ?0"), .gets(413), .does("finish"),
            ]),
        UploadDialogue(
            name: "a server that cannot replay its response", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(sentAll: true), .resumes(),
                .does("HEAD /u/1"),
                .gets(204, ["Upload-Offset": "10", "Upload-Complete": "?1", "Upload-Length": "10"]),
                .does("PATCH /u/1 10..<10 ?1"), .gets(501), .does("finish as located"),
            ]),
        UploadDialogue(
            name: "a 413 of a server that may not know the draft", uploadProtocol: nil, length: 300_000,
            steps: [
                .does("OPTIONS /up"), .gets(405), .does("POST /up 0..<300000 ?1"), .gets(413), .does("finish"),
            ]),
        UploadDialogue(
            name: "a size of parts for a server that may not know the draft", uploadProtocol: nil,
            change: { $0.partSize = 4 }, steps: [.does("OPTIONS /up"), .gets(204), .does("POST /up 0..<10 ?1")]),
        UploadDialogue(
            name: "a server that forgets after the end, and after an interim response with an offset",
            uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .interim(["Upload-Offset": "5"]),
                .loses(sentAll: true), .resumes(), .does("HEAD /u/1"), .gets(404), .does("fail outcomeUnknown"),
            ]),
        UploadDialogue(
            name: "a 413 to a part", uploadProtocol: .ietf, length: 300_000, change: { $0.partSize = 200_000 },
            steps: [
                .does("POST /up 0..<200000 ?0"), .gets(201, ["Location": "/u/1", "Upload-Complete": "?0"]),
                .does("PATCH /u/1 200000..<300000 ?1"), .gets(413), .does("finish"),
            ]),
        UploadDialogue(
            name: "an upload at a URL without encryption", uploadProtocol: .ietf, change: { $0.partSize = 4 },
            steps: [
                .does("POST /up 0..<4 ?0"), .gets(201, ["Location": "ftp://a.example/u/1", "Upload-Complete": "?0"]),
                .does("fail it created an upload without a URL, or with two"),
            ]),
        UploadDialogue(
            name: "two URLs", uploadProtocol: .ietf, change: { $0.partSize = 4 },
            steps: [
                .does("POST /up 0..<4 ?0"), .interim(["Location": "/u/1"]),
                .gets(201, ["Location": "/u/2", "Upload-Complete": "?0"]),
                .does("fail it created an upload without a URL, or with two"),
            ]),
        UploadDialogue(
            name: "an upload that the server has ended early", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(), .resumes(), .does("HEAD /u/1"),
                .gets(204, ["Upload-Offset": "6", "Upload-Complete": "?1"]),
                .does("fail it has ended the upload before its last byte"),
            ]),
        UploadDialogue(
            name: "limits of a wrong type are ignored", uploadProtocol: nil,
            steps: [
                .does("OPTIONS /up"), .gets(204, ["Upload-Limit": "max-append-size=4, max-size=\"9\""]),
                .does("POST /up 0..<10 ?1"),
            ]),
        UploadDialogue(
            name: "an append that is answered without Upload-Complete", uploadProtocol: .ietf,
            change: { $0.partSize = 5 },
            steps: [
                .does("POST /up 0..<5 ?0"), .gets(201, ["Location": "/u/1"]), .does("PATCH /u/1 5..<10 ?1"), .gets(204),
                .does("HEAD /u/1"), .gets(204, ["Upload-Offset": "10", "Upload-Complete": "?1"]),
                .does("PATCH /u/1 10..<10 ?1"), .gets(410), .does("finish as located"),
            ]),
        UploadDialogue(
            name: "credentials that have expired", uploadProtocol: .ietf,
            steps: [
                .does("POST /up 0..<10 ?1"), .interim(["Location": "/u/1"]), .loses(), .resumes(), .does("HEAD /u/1"),
                .gets(401), .does("finish"),
            ]),
    ]

    /// Performs the steps.
    func run() throws {
        var options = UploadOptions.resumable.with { $0.uploadProtocol = uploadProtocol }
        change(&options)
        var upload = ResumableUpload(
            length: length, options: options, mayRepeatCreation: mayRepeatCreation,
            key: isRecognized ? 1 : nil)
        var action: ResumableUpload.Action? = upload.resume(now: 0)
        var last = try url("http://a.example/up")
        for (index, step) in steps.enumerated() {
            switch step {
            case .does(let text):
                #expect(action.words == text, "step \(index)")
                if case .send(let message) = action, let url = message.url { last = url }
            case .gets(let status, let fields):
                action = upload.receive(try head(status, fields, last), now: 0)
            case .interim(let fields):
                upload.receiveInterim(try head(104, fields.merging(Self.interop) { $1 }, last), now: 0)
            case .loses(let reached, let sentAll):
                if !upload.interrupt(mayHaveReachedServer: reached, sentAll: sentAll) { action = nil }
            case .resumes(let time):
                action = upload.resume(now: time)
            }
        }
    }

    private func head(_ status: Int, _ fields: [String: String], _ url: URL) throws -> ResponseHead {
        ResponseHead(
            status: HTTPResponse.Status(code: status),
            headers: try HTTPFields(validating: fields.map { ($0.key, $0.value) }), url: url)
    }
}

extension ResumableUpload.Action? {
    fileprivate var words: String {
        switch self {
        case .send(let message): message.words
        case .wait: "wait"
        case .finish: "finish"
        case .finishAsLocated: "finish as located"
        case .fail(.server(let text)): "fail \(text)"
        case .fail(let failure): "fail \(failure)"
        case nil: "give up"
        }
    }
}

extension UploadMessage {
    /// The method, the path, the range, and `Upload-Complete`.
    var words: String {
        [
            method?.rawValue ?? "POST", url?.path() ?? "/up", exchange.range.map { "\($0)" },
            HTTPField.Name("Upload-Complete").flatMap { fields[$0] },
        ].compactMap(\.self).joined(separator: " ")
    }
}

@Suite struct ResumableUploadTests {
    @Test(arguments: UploadDialogue.tusCases)
    func `the dialogues of tus 1`(dialogue: UploadDialogue) throws { try dialogue.run() }

    @Test(arguments: UploadDialogue.ietfCases)
    func `the dialogues of the draft`(dialogue: UploadDialogue) throws { try dialogue.run() }

    private static func head(_ status: Int, _ fields: [String: String] = [:]) throws -> ResponseHead {
        ResponseHead(
            status: HTTPResponse.Status(code: status),
            headers: try HTTPFields(validating: fields.map { ($0.key, $0.value) }), url: try url("http://a.example/up"))
    }

    private static func message(_ action: ResumableUpload.Action) throws -> UploadMessage {
        guard case .send(let message) = action else { throw Planned() }
        return message
    }

    @Test func `the messages of tus have the fields of the protocol`() throws {
        var upload = ResumableUpload(
            length: 10, options: .resumable.with { $0.verifiesParts = true }, metadata: "filename YQ==")
        #expect(try Self.message(upload.resume(now: 0)).fields.lines == [])
        let options = try Self.head(
            204,
            UploadDialogue.tus.merging(["Tus-Checksum-Algorithm": "md5,SHA1,crc32"]) { $1 })
        let creation = try Self.message(upload.receive(options, now: 0))
        #expect(
            creation.fields.lines.sorted() == [
                "Tus-Resumable: 1.0.0", "Upload-Length: 10", "Upload-Metadata: filename YQ==",
            ])
        let part = try Self.message(upload.receive(try Self.head(201, ["Location": "/u/1"]), now: 0))
        #expect(
            part.fields.lines.sorted() == [
                "Content-Type: application/offset+octet-stream", "Tus-Resumable: 1.0.0", "Upload-Offset: 0",
            ])
        #expect(part.digest == .checksum(.sha1))
        #expect(upload.cancellation() == nil, "The last byte may have arrived.")
        _ = upload.interrupt(mayHaveReachedServer: true, sentAll: false)
        let cancellation = try #require(upload.cancellation())
        #expect(cancellation.words == "DELETE /u/1")
        #expect(cancellation.fields.lines == ["Tus-Resumable: 1.0.0"])
    }

    @Test func `the messages of the draft have the fields of the protocol`() throws {
        var upload = ResumableUpload(
            length: 10,
            options: .resumable.with { ($0.uploadProtocol, $0.verifiesParts, $0.partSize) = (.ietf, true, 4) })
        let creation = try Self.message(upload.resume(now: 0))
        #expect(
            creation.fields.lines.sorted() == [
                "Upload-Complete: ?0", "Upload-Draft-Interop-Version: 8", "Upload-Length: 10",
            ])
        #expect(creation.contentFields == .ofWhole)
        #expect(upload.cancellation() == nil)
        let part = try Self.message(
            upload.receive(try Self.head(201, ["Location": "/u/1", "Upload-Complete": "?0"]), now: 0))
        #expect(
            part.fields.lines.sorted() == [
                "Content-Type: application/partial-upload", "Upload-Complete: ?0", "Upload-Draft-Interop-Version: 8",
                "Upload-Offset: 4",
            ])
        #expect(part.digest == .contentDigest)
        #expect(part.contentFields == .none)
        #expect(upload.cancellation()?.words == "DELETE /u/1")
        #expect(upload.cancellation()?.fields.lines == ["Upload-Draft-Interop-Version: 8"])
    }

    @Test(arguments: [[:], ["Upload-Draft-Interop-Version": "7"], ["Upload-Draft-Interop-Version": "8.0"]])
    func `an interim response of another version of the draft is ignored`(fields: [String: String]) throws {
        var upload = ResumableUpload(length: 10, options: .resumable.with { $0.uploadProtocol = .ietf })
        _ = upload.resume(now: 0)
        upload.receiveInterim(try Self.head(104, fields.merging(["Location": "/u/1"]) { $1 }), now: 0)
        #expect(upload.known == nil)
    }

    @Test func `an upload of an earlier process begins with the question for its offset`() throws {
        var first = ResumableUpload(length: 10, options: .resumable.with { $0.uploadProtocol = .ietf })
        _ = first.resume(now: 0)
        first.receiveInterim(
            try Self.head(
                104, ["Upload-Draft-Interop-Version": "8", "Location": "/u/1", "Upload-Limit": "max-age=60"]),
            now: 1000)
        let known = try #require(first.known)
        #expect(known.expiry == 1060)
        var second = ResumableUpload(length: 10, continuing: known)
        #expect(try Self.message(second.resume(now: 1059)).words == "HEAD /u/1")
        // The earlier process has sent the last byte, and may have completed the upload.
        #expect(second.receive(try Self.head(404, [:]), now: 1059) == .fail(.outcomeUnknown))
        #expect(second.cancellation() == nil)
        #expect(second.cancellation(evenIfComplete: true)?.words == "DELETE /u/1")
        // An expiry is that of the server's clock.
        var late = ResumableUpload(length: 10, continuing: known)
        #expect(try Self.message(late.resume(now: 1060)).words == "HEAD /u/1")
        #expect(late.receive(try Self.head(410, [:]), now: 1060) == .fail(.outcomeUnknown))
        var repeatable = ResumableUpload(length: 10, continuing: known, mayRepeatCreation: true)
        #expect(try Self.message(repeatable.resume(now: 1060)).words == "HEAD /u/1")
        #expect(
            try Self.message(repeatable.receive(try Self.head(404, [:]), now: 1060)).words == "POST /up 0..<10 ?1")
        _ = first.interrupt(mayHaveReachedServer: true, sentAll: false)
        var incomplete = ResumableUpload(length: 10, continuing: first.known)
        #expect(try Self.message(incomplete.resume(now: 1060)).words == "POST /up 0..<10 ?1")
    }

    @Test(
        arguments: [(nil, nil, false), (1, nil, false), (nil, 1, false), (1, 2, false), (1, 1, true)]
            as [(UInt64?, UInt64?, Bool)])
    func `a server recognizes an upload by the key with which it was created`(
        key: UInt64?, later: UInt64?, isRecognized: Bool
    ) throws {
        var first = ResumableUpload(length: 10, options: .resumable.with { $0.uploadProtocol = .ietf }, key: key)
        _ = first.resume(now: 0)
        first.receiveInterim(
            try Self.head(104, ["Upload-Draft-Interop-Version": "8", "Location": "/u/1"]), now: 0)
        var second = ResumableUpload(length: 10, continuing: first.known, key: later)
        #expect(try Self.message(second.resume(now: 0)).words == "HEAD /u/1")
        let action: ResumableUpload.Action? = second.receive(try Self.head(404), now: 0)
        #expect(isRecognized ? action.words == "POST /up 0..<10 ?1" : action == .fail(.outcomeUnknown))
        // One that was not complete is created again, by the later key.
        _ = first.interrupt(mayHaveReachedServer: true, sentAll: false)
        second = ResumableUpload(length: 10, continuing: first.known, key: later)
        _ = second.resume(now: 0)
        #expect(try Self.message(second.receive(try Self.head(404), now: 0)).words == "POST /up 0..<10 ?1")
        let goesOn = second.interrupt(mayHaveReachedServer: true, sentAll: true)
        #expect(goesOn == (later != nil))
    }

    @Test(arguments: [(false, false, false), (false, true, true), (true, false, true)])
    func `an empty request that does not reach the server completes nothing`(
        isComplete: Bool, reachesServer: Bool, mayBeComplete: Bool
    ) throws {
        var upload = ResumableUpload(length: 10, options: .resumable.with { $0.uploadProtocol = .ietf })
        _ = upload.resume(now: 0)
        upload.receiveInterim(
            try Self.head(104, ["Upload-Draft-Interop-Version": "8", "Location": "/u/1"]), now: 0)
        _ = upload.interrupt(mayHaveReachedServer: true, sentAll: isComplete)
        _ = upload.resume(now: 0)
        let offset = ["Upload-Offset": "10", "Upload-Complete": "?0"]
        #expect(try Self.message(upload.receive(try Self.head(204, offset), now: 0)).words == "PATCH /u/1 10..<10 ?1")
        _ = upload.interrupt(mayHaveReachedServer: reachesServer, sentAll: true)
        _ = upload.resume(now: 0)
        let action: ResumableUpload.Action? = upload.receive(try Self.head(404), now: 0)
        #expect(mayBeComplete ? action == .fail(.outcomeUnknown) : action.words == "POST /up 0..<10 ?1")
    }

    @Test func `an upload that the server denies is recorded until another is created or rejected`() throws {
        func denied() throws -> ResumableUpload {
            var upload = ResumableUpload(length: 10)
            _ = upload.resume(now: 0)
            _ = upload.receive(try Self.head(204, UploadDialogue.tus), now: 0)
            _ = upload.receive(try Self.head(201, ["Location": "/u/1"]), now: 0)
            #expect(try Self.message(upload.receive(try Self.head(403), now: 0)).words == "POST /up 0..<0")
            return upload
        }
        let first = try url("http://a.example/u/1")
        #expect(try denied().known == nil)
        #expect(try denied().recorded?.url == first)
        for (status, isRecorded) in [(401, true), (403, true), (503, true), (400, false), (422, false)] {
            var upload = try denied()
            _ = upload.receive(try Self.head(status), now: 0)
            #expect((upload.recorded?.url == first) == isRecorded, "\(status)")
        }
        var upload = try denied()
        _ = upload.receive(try Self.head(201, ["Location": "/u/2"]), now: 0)
        #expect(upload.recorded?.url == (try url("http://a.example/u/2")))
        // The second one is gone, and not denied.
        _ = upload.receive(try Self.head(404), now: 0)
        #expect(upload.recorded == nil)
    }

    @Test func `what is known is forgotten when the upload has ended, but not when another may go on`() throws {
        let ends: [(status: Int, fields: [String: String], isForgotten: Bool)] = [
            (200, ["Upload-Complete": "?1"], true), (400, [:], true), (422, ["Upload-Complete": "?1"], true),
            (401, [:], false), (403, [:], false), (500, ["Upload-Complete": "?1"], true),
        ]
        for end in ends {
            var upload = ResumableUpload(length: 10, options: .resumable.with { $0.uploadProtocol = .ietf })
            _ = upload.resume(now: 0)
            upload.receiveInterim(try Self.head(104, UploadDialogue.interop.merging(["Location": "/u"]) { $1 }), now: 0)
            #expect(upload.receive(try Self.head(end.status, end.fields), now: 0) == .finish)
            #expect((upload.known == nil) == end.isForgotten, "\(end.status)")
        }
    }
}
