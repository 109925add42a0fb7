// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct ParametersTextTests {
    /// The texts are those printed by date(1).
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"), (-0.5, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"), (951_868_800, "2000-03-01T00:00:00Z"),
            (-2_203_891_200, "1900-03-01T00:00:00Z"), (-2_203_891_201, "1900-02-28T23:59:59Z"),
            (1_704_067_199.75, "2023-12-31T23:59:59Z"), (-12_219_292_801, "1582-10-14T23:59:59Z"),
            (-50_000_000_000, "0385-07-25T07:06:40Z"), (-62_135_596_800, "0001-01-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] as [(Double, String)])
    func `dates are encoded in UTC and the Gregorian calendar`(seconds: Double, text: String) throws {
        let parameters = Parameters.date(Date(timeIntervalSince1970: seconds))
        let request = try JSONRequestSerializer().encode(makeRequest("POST"), parameters: parameters)
        #expect(request.bytes == "\"\(text)\"")
    }

    @Test func `dates since 1582 agree with the formatter of Foundation`() throws {
        for seconds in stride(from: -12_219_292_800.0, to: 253_402_300_799, by: 36_036_007) {
            let date = Date(timeIntervalSince1970: seconds)
            let query = try URLEncodedFormEncoder().pairs(["d": Parameters.date(date)]).first?.value
            let expected = date.formatted(.iso8601).replacing("T", with: " ").replacing("Z", with: " +0000")
            guard query != expected else { continue }
            Issue.record("\(query ?? "nil") is not \(expected)")
            return
        }
    }
}
