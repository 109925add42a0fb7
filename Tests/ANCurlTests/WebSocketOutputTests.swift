// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import Testing

@Suite struct WebSocketOutputTests {
    /// Offers the output to a function that accepts at most `limits[n]` bytes at its n-th call, and returns what it was
    /// offered.
    private func send(_ output: inout WebSocketOutput, limits: [Int]) -> [[UInt8]] {
        var offers: [[UInt8]] = []
        func accept(_ bytes: ArraySlice<UInt8>) -> Int {
            offers.append(Array(bytes))
            return min(bytes.count, offers.count <= limits.count ? limits[offers.count - 1] : 0)
        }
        while output.sendOnce(accept) > 0 {}
        return offers
    }

    @Test func `small frames are joined`() {
        var output = WebSocketOutput()
        #expect(output.isEmpty)
        output.append([1, 2])
        output.append([3])
        output.append([4])
        #expect(output.count == 4)
        #expect(send(&output, limits: [9]) == [[1, 2, 3, 4]])
        #expect(output.isEmpty)
    }

    @Test func `bytes that were not accepted are offered again, before later ones`() {
        var output = WebSocketOutput()
        output.append([1, 2, 3])
        #expect(send(&output, limits: [1, 0]) == [[1, 2, 3], [2, 3]])
        #expect(output.count == 2)
        #expect(output.acceptedCount == 1)
        output.append([4])
        #expect(send(&output, limits: [2, 1]) == [[2, 3], [4]])
        #expect(output.isEmpty)
    }

    @Test func `all frames are sent although the output is never empty`() {
        var output = WebSocketOutput()
        let frame = [UInt8](repeating: 1, count: 10_000)
        for _ in 0..<1000 {
            output.append(frame)
            output.append(frame)
            _ = send(&output, limits: [10_000])
        }
        #expect(output.count == 1000 * 10_000)
        #expect(
            send(&output, limits: [Int](repeating: .max, count: 2000)).map(\.count).reduce(0, +) == output.acceptedCount
                - 1000 * 10_000)
        #expect(output.isEmpty)
    }

    @Test func `discarded bytes were not accepted`() {
        var output = WebSocketOutput()
        output.append([1, 2, 3])
        _ = send(&output, limits: [2])
        output.discard()
        #expect(output.isEmpty)
        #expect(output.acceptedCount == 2)
    }

    @Test func `pongs that are replaced by later ones need not be waited for`() {
        var output = WebSocketOutput()
        output.append([1, 2, 3], isMessage: true)
        _ = send(&output, limits: [1])
        output.appendPong([UInt8](repeating: 7, count: 10_000))
        // What a sender waits for.
        let awaited = output.acceptedCount + output.count
        output.appendPong([UInt8](repeating: 8, count: 7_000))
        _ = send(&output, limits: [Int](repeating: .max, count: 9))
        #expect(output.isEmpty)
        #expect(output.acceptedCount >= awaited)
    }

    @Test func `messages are known until their last byte was accepted`() {
        var output = WebSocketOutput()
        #expect(!output.hasMessages)
        output.append([1])
        output.appendPong([2])
        #expect(!output.hasMessages)
        output.append([3, 4], isMessage: true)
        output.append([5, 6])
        #expect(output.hasMessages)
        _ = send(&output, limits: [3])
        #expect(output.hasMessages)
        _ = send(&output, limits: [1])
        #expect(!output.hasMessages)
        #expect(output.count == 2)
        output.append([7], isMessage: true)
        #expect(output.hasMessages)
        output.discard()
        #expect(!output.hasMessages)
    }

    @Test func `a large frame is not joined with others`() {
        var output = WebSocketOutput()
        output.append([1])
        output.append([UInt8](repeating: 2, count: 20_000))
        output.append([3])
        #expect(send(&output, limits: [.max, .max, .max]).map(\.count) == [1, 20_000, 1])
    }

    @Test func `pongs are sent before frames, in order`() {
        var output = WebSocketOutput()
        output.append([1])
        output.appendPong([8])
        output.appendPong([9])
        #expect(output.count == 3)
        #expect(send(&output, limits: [9]) == [[8, 9, 1]])
        #expect(output.isEmpty)
    }

    @Test func `a pong does not interrupt a frame`() {
        var output = WebSocketOutput()
        output.append([1, 2])
        #expect(send(&output, limits: [1]) == [[1, 2], [2]])
        output.appendPong([9])
        #expect(send(&output, limits: [1, 1]) == [[2], [9]])
    }

    @Test func `the latest of too many waiting pongs replaces the others`() {
        var output = WebSocketOutput()
        for number in 0..<8 { output.appendPong([UInt8](repeating: UInt8(number), count: 2048)) }
        output.appendPong([8])
        output.append([9])
        #expect(output.count == 2)
        #expect(send(&output, limits: [9]) == [[8, 9]])
    }

    @Test(arguments: [0, 1, 10, 64, 65, 127, 128, 129, 1000])
    func `of many pings that arrive together the last 64 are answered, in their order`(count: Int) {
        var batch = PongBatch()
        let pongs = (0..<count).map { WebSocketFrame(.pong, [UInt8($0 >> 8), UInt8($0 & 0xFF)]) }
        for pong in pongs { batch.append(pong) }
        #expect(batch.frames == pongs.suffix(64))
    }
}
