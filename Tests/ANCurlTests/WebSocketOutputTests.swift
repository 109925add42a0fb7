// SPDX-License-Identifier: MIT

import ANCurl
import Testing

@Suite struct WebSocketOutputTests {
    /// Offers the output to a function that accepts at most `limits[n]` bytes at its n-th call, and returns what it was
    /// offered and the number of accepted messages.
    private func send(_ output: inout WebSocketOutput, limits: [Int]) -> (offers: [[UInt8]], messages: Int) {
        var offers: [[UInt8]] = []
        let messages = output.send { bytes in
            offers.append(Array(bytes))
            return min(bytes.count, offers.count <= limits.count ? limits[offers.count - 1] : 0)
        }
        return (offers, messages)
    }

    @Test func `small frames are joined, and messages are counted when they were accepted`() {
        var output = WebSocketOutput()
        #expect(output.isEmpty)
        output.append([1, 2], isMessage: true)
        output.append([3])
        output.append([4], isMessage: true)
        let (offers, messages) = send(&output, limits: [9])
        #expect(offers == [[1, 2, 3, 4]])
        #expect(messages == 2)
        #expect(output.isEmpty)
    }

    @Test func `bytes that were not accepted are offered again, before later ones`() {
        var output = WebSocketOutput()
        output.append([1, 2, 3], isMessage: true)
        #expect(send(&output, limits: [1, 0]).offers == [[1, 2, 3], [2, 3]])
        output.append([4], isMessage: true)
        let (offers, messages) = send(&output, limits: [2, 1])
        #expect(offers == [[2, 3], [4]])
        #expect(messages == 2)
    }

    @Test func `a large frame is not joined with others`() {
        var output = WebSocketOutput()
        output.append([1])
        output.append([UInt8](repeating: 2, count: 20_000), isMessage: true)
        output.append([3])
        let (offers, messages) = send(&output, limits: [.max, .max, .max])
        #expect(offers.map(\.count) == [1, 20_000, 1])
        #expect(messages == 1)
    }

    @Test func `pongs are sent before frames, in order`() {
        var output = WebSocketOutput()
        output.append([1])
        output.appendPong([8])
        output.appendPong([9])
        #expect(!output.isEmpty)
        #expect(send(&output, limits: [9]).offers == [[8, 9, 1]])
        #expect(output.isEmpty)
    }

    @Test func `the latest of too many waiting pongs replaces the others`() {
        var output = WebSocketOutput()
        for number in 0..<8 { output.appendPong([UInt8](repeating: UInt8(number), count: 2048)) }
        output.appendPong([8])
        output.append([9])
        #expect(send(&output, limits: [9]).offers == [[8, 9]])
    }
}
