// SPDX-License-Identifier: MIT

import ANHTTP
import Testing

@Suite struct HTTPDateTests {
    /// 2026-11-21 00:00:00 UTC, by `date -ud 2026-11-21 +%s`.
    private static let now: Int64 = 1_795_219_200

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000", "Sunday, 06-Nov-94 08:49:37 UTC",
    ])
    func `the three date forms of RFC 9110 give the same time`(text: String) {
        #expect(HTTPDate(text, now: Self.now)?.seconds == 784_111_777)
    }

    /// The seconds are those of `date -ud TEXT +%s`.
    @Test(arguments: [
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
        ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
        ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
        ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
        ("Mon, 1 Jan 0001 00:00:00 GMT", -62_135_596_800),
        ("Sunday, 06-Nov-76 08:49:37 GMT", 3_371_878_177),
        ("Friday, 31-Dec-76 23:59:59 GMT", 220_924_799),
        ("Tuesday, 29-Feb-72 00:00:00 GMT", 3_223_929_600),
        ("Sunday, 06-Nov-77 08:49:37 GMT", 247_654_177),
    ])
    func `dates are converted according to the Gregorian calendar`(text: String, seconds: Int64) {
        #expect(HTTPDate(text, now: Self.now)?.seconds == seconds)
    }

    @Test(arguments: [
        "", " ", "0", "120", "Sun, 06 Nov 1994", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Nov 1994 08:49:37 +0100", "Sun, 06 Nov 1994 08:49:37 utc",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Wed, 29 Feb 2023 00:00:00 GMT", "Thu, 29 Feb 1900 00:00:00 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 199 08:49:37 GMT", "Sun, 06 Nov 19940 08:49:37 GMT",
        "Sun, 006 Nov 1994 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov -994 08:49:37 GMT",
        "Sunday, 06-Nov-4 08:49:37 GMT", "Sunday, 06-Nov-004 08:49:37 GMT", "Sun, ٠٦ Nov 1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 94", "1994-11-06T08:49:37Z",
    ])
    func `any other text is not a date`(text: String) {
        #expect(HTTPDate(text, now: Self.now) == nil)
    }
}
