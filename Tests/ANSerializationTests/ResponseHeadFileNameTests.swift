// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct ResponseHeadFileNameTests {
    @Test(
        arguments: [
            (#"attachment; filename="report.pdf""#, "/x", "report.pdf"),
            ("attachment; filename*=UTF-8''na%C3%AFve.txt; filename=naive.txt", "/x", "naïve.txt"),
            ("attachment; filename*=UTF-8''..; filename=naive.txt", "/x", "naive.txt"),
            (#"attachment; filename="../../etc/passwd""#, "/x", "passwd"),
            (#"attachment; filename="..""#, "/files/disk.iso", "disk.iso"),
            // A name that would be shown as exe.txt, a line separator, and an emoji with joiners.
            ("attachment; filename*=UTF-8''a%E2%80%AEtxt.exe", "/x", "atxt.exe"),
            ("attachment; filename*=UTF-8''%E2%81%A6a%E2%80%A8b%07%D8%9C", "/x", "ab"),
            ("attachment; filename*=UTF-8''%F0%9F%91%A9%E2%80%8D%F0%9F%92%BB.png", "/x", "👩‍💻.png"),
            ("attachment; filename*=UTF-8''.%E2%80%8E.", "/x", "x"),
            ("attachment; filename=a.part.json", "/b", "b"), ("attachment; filename=a.part", "/b", "b"),
            (nil, "/a%2Epart", nil), (nil, "/a.part.zip", "a.part.zip"),
            // The character before the dot joins it.
            ("attachment; filename*=UTF-8''x%D8%80.part.json", "/b", "b"), (nil, "/x%E0%B5%8E.part.json", nil),
            ("inline", "/files/a%2Fb%20c.txt", "b c.txt"),
            (nil, "/files/disk.iso?version=2", "disk.iso"),
            (nil, "/", nil), (nil, "/caf%E9/report.pdf", "report.pdf"), (nil, "/a/caf%E9.pdf", "caf%E9.pdf"),
            (nil, "/a/b%2F..%2Fc/", "c"), (nil, "/a/%2E%2E", nil), (nil, "/%2F", nil), (nil, "", nil),
        ] as [(String?, String, String?)])
    func `the name is that of the header field or of the URL`(field: String?, path: String, name: String?) throws {
        let url = try #require(URL(string: "https://a.example\(path)"))
        var head = ResponseHead(status: .ok, url: url)
        head.headers[.contentDisposition] = field
        #expect(head.suggestedFilename == name)
        if field == nil { #expect(url.suggestedFilename == name) }
    }
}
