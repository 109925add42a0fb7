// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import Foundation
import Glibc
import HTTPTypes

/// Stores responses in a cache's directory until it has stored the given number, or kills itself after the given time:
/// `CacheWriter DIRECTORY SEED COUNT [MICROSECONDS]`.
///
/// The body of a response is determined by its `X-Seed` field and its length.
@main
struct CacheWriter {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4, var state = UInt64(arguments[2]), let count = Int(arguments[3]) else { return }
        if let time = arguments.dropFirst(4).first.flatMap({ UInt32($0) }) { killAfter(time) }
        let cache = ResponseCache.disk(arguments[1], capacity: 8 << 20, memory: 1 << 20, entries: 60)
        func random() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }
        for number in 0..<count {
            let target = "http://a.example/\(random() % 40)"
            // Most bodies are small; some have a file of their own.
            let size = random() % 4 == 0 ? Int(random() % 300_000) : Int(random() % 3_000)
            await store(target, seed: random(), size, in: cache)
            let key = CacheKey(target: target)
            if number % 3 == 0, let entry = cache.entries(key).first {
                // As after a 304: another entry with the same body.
                cache.insert(entry.with(entry.response.invalidated()), key) { _ in true }
            }
        }
    }

    /// Ends the process by SIGKILL, from another thread and at any instruction of this one.
    private static func killAfter(_ microseconds: UInt32) {
        Thread.detachNewThread {
            usleep(microseconds)
            kill(getpid(), SIGKILL)
        }
    }

    private static func store(_ target: String, seed: UInt64, _ size: Int, in cache: ResponseCache) async {
        let key = CacheKey(target: target)
        let writer = cache.writer(key)
        let data = Data((0..<size).map { UInt8(truncatingIfNeeded: (seed &+ UInt64($0)) &* 2_654_435_761 >> 7) })
        for start in stride(from: 0, to: size, by: 20_000) {
            await writer.append(Data(data[start..<min(size, start + 20_000)]))
        }
        guard let name = HTTPField.Name("X-Seed"), let body = await writer.finish(expected: Int64(size)) else { return }
        let head = ResponseHead(status: .ok, headers: [name: String(seed)], url: URL(filePath: "/"))
        let stored = StoredResponse(
            head, trailers: [:], bodyLength: body.length, to: CacheRequest(target: target), requestTime: .now,
            responseTime: .now, owner: 0)
        cache.insert(CacheEntry(stored, body: body), key) { _ in true }
    }
}
